import Foundation
import Testing

/// A terminal of the test's own, on which the command runs.
final class Terminal {
    struct Unavailable: Error {}

    private let process = Process()
    private let (master, slave): (Int32, Int32)
    private(set) var shown = ""

    /// - Parameters:
    ///   - program: Another one than `larder`.
    ///   - typing: Whether the command reads what is typed there.
    ///   - size: What the terminal says of itself, in columns and rows.
    init(
        _ arguments: [String], program: String = "larder", showsErrors: Bool = false, typing: Bool = false,
        size: (columns: Int, rows: Int) = (0, 0), environment: [String: String] = [:]
    ) throws {
        let (master, slave) = try Self.pair()
        (self.master, self.slave) = (master, slave)
        var said = winsize()
        (said.ws_col, said.ws_row) = (numericCast(size.columns), numericCast(size.rows))
        guard ioctl(slave, numericCast(TIOCSWINSZ), &said) == 0 else { throw Unavailable() }
        process.executableURL = LarderProcess.executable(program)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["TERM": "xterm", "NO_COLOR": ""]) { $1 }
            .merging(environment) { $1 }
        process.standardInput =
            typing ? FileHandle(fileDescriptor: slave, closeOnDealloc: false) : FileHandle.nullDevice
        process.standardOutput = FileHandle(fileDescriptor: slave, closeOnDealloc: false)
        process.standardError = showsErrors ? process.standardOutput : FileHandle.nullDevice
        try process.start()
    }

    private static func pair() throws -> (master: Int32, slave: Int32) {
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard master >= 0, fcntl(master, F_SETFL, O_NONBLOCK) == 0 else { throw Unavailable() }
        #if os(Linux)
        // TIOCSPTLCK and TIOCGPTN: the functions of the C library for these are not imported.
        var (lock, number) = (Int32(0), UInt32(0))
        guard ioctl(master, 0x4004_5431, &lock) == 0, ioctl(master, 0x8004_5430, &number) == 0 else {
            throw Unavailable()
        }
        let name = "/dev/pts/\(number)"
        #else
        guard grantpt(master) == 0, unlockpt(master) == 0, let text = ptsname(master) else { throw Unavailable() }
        let name = String(cString: text)
        #endif
        let slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard slave >= 0 else { throw Unavailable() }
        return (master, slave)
    }

    deinit {
        if process.isRunning { process.terminate() }
        close(master)
        close(slave)
    }

    /// Types a text, as a person would.
    func type(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(write(master, bytes, bytes.count) == bytes.count)
    }

    /// Sends what the terminal's interrupt key does.
    func interrupt() { kill(process.processIdentifier, SIGINT) }

    /// Whether the terminal shows what is typed.
    var showsTyping: Bool {
        var settings = termios()
        return tcgetattr(slave, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }

    private func take() {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while case let count = read(master, &buffer, buffer.count), count > 0 {
            shown += String(decoding: buffer[..<count], as: UTF8.self)
        }
    }

    /// Waits until something was shown. Gives up when the command has ended, or after a minute.
    func wait(for text: String) async throws {
        let deadline = SuspendingClock.now + .seconds(60)
        while true {
            take()
            if shown.contains(text) { return }
            try #require(process.isRunning && .now < deadline, "\(text) in \(shown)")
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Waits for its end.
    ///
    /// - Returns: Its exit status.
    func finish() async -> Int32 {
        while process.isRunning {
            take()
            try? await Task.sleep(for: .milliseconds(10))
        }
        take()
        return process.terminationStatus
    }
}
