import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The files that every process is given.
package enum StandardFiles {
    /// The reader of standard output has gone.
    struct Closed: Error {}

    /// Gets the process ready to write to them.
    ///
    /// A reader that goes away is an error of the write and not a signal. And where the caller closed one of them, it
    /// is opened to nowhere: otherwise the next file to be opened, such as the store's own, would get its number, and
    /// what is printed would be written into it.
    package static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        for descriptor in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO] where fcntl(descriptor, F_GETFD) == -1 {
            // Opening takes the lowest free number, which is this one: those below it are open by now.
            _ = open("/dev/null", descriptor == STDIN_FILENO ? O_RDONLY : O_WRONLY)
        }
    }

    /// Writes to standard output; to a terminal only what it shows and does not obey.
    static func writeOutput(_ bytes: [UInt8]) throws {
        try writeUnchanged(isatty(STDOUT_FILENO) == 1 ? TerminalText.visible(bytes) : bytes)
    }

    /// Writes to standard output what a terminal is to obey. Texts from elsewhere have no place in it.
    static func writeUnchanged(_ bytes: [UInt8]) throws {
        switch write(bytes, to: STDOUT_FILENO) {
        case 0: return
        case EPIPE: throw Closed()
        case let status:
            throw Failure(.output, .failure, "Standard output cannot be written: \(String(cString: strerror(status)))")
        }
    }

    /// Writes to standard error, as `writeOutput` does. Where that fails, there is no other place to report it.
    ///
    /// - Parameter tone: Its colour, where it goes to a terminal that has colours.
    static func writeError(_ bytes: [UInt8], tone: TableCell.Tone? = nil) {
        guard errorIsTerminal else { return _ = write(bytes, to: STDERR_FILENO) }
        let text = String(decoding: TerminalText.visible(bytes), as: UTF8.self)
        _ = write(Array(TableText.coloured(text, hasColours ? tone : nil).utf8), to: STDERR_FILENO)
    }

    /// Writes to standard error what a person is to read who is asked something.
    package static func sayToPerson(_ text: String) { writeError(Array(text.utf8)) }

    package static var errorIsTerminal: Bool { isatty(STDERR_FILENO) == 1 }
    static var outputIsTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

    /// Whether a terminal is to be given colours: https://no-color.org
    static var hasColours: Bool {
        let variables = ProcessInfo.processInfo.environment
        let terminal = variables["TERM"] ?? ""
        return variables["NO_COLOR", default: ""].isEmpty && !terminal.isEmpty && terminal != "dumb"
    }

    /// The size of the terminal that standard output is, in columns and rows; nil where neither the terminal says it nor
    /// `COLUMNS` and `LINES` do.
    static var outputSize: (columns: Int, rows: Int)? {
        var size = winsize()
        if ioctl(STDOUT_FILENO, numericCast(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 {
            return (Int(size.ws_col), Int(size.ws_row))
        }
        func number(_ variable: String) -> Int? {
            ProcessInfo.processInfo.environment[variable].flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
        }
        return number("COLUMNS").map { ($0, number("LINES") ?? 24) }
    }

    /// - Returns: Zero, or the `errno`.
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { buffer in
            var offset = 0
            while offset < buffer.count {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[offset...])
                #if canImport(Darwin)
                let written = Darwin.write(descriptor, rest.baseAddress, rest.count)
                #elseif canImport(Glibc)
                let written = Glibc.write(descriptor, rest.baseAddress, rest.count)
                #else
                let written = Musl.write(descriptor, rest.baseAddress, rest.count)
                #endif
                if written >= 0 {
                    offset += written
                } else if errno == EAGAIN {
                    var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    _ = poll(&waiting, 1, 1_000)
                } else if errno != EINTR {
                    return errno
                }
            }
            return 0
        }
    }
}
