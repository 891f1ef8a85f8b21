import Foundation
import LarderCommandLine

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Asks on standard error, and reads answers from standard input, a line each. Answers are given to nobody else.
final class Questions: Sendable {
    /// No answer has more bytes.
    private static let maximumSize = 4096

    /// Whether a person answers.
    let isTerminal = isatty(STDIN_FILENO) == 1
    /// One for all questions: what a signal does belongs to the process, and one that ends as the next begins would take
    /// the signals away from it. Nil where no person answers.
    private let interruption: Interruption?

    /// The terminal gets its echo back, whichever key or hang-up ends the program.
    init() { interruption = isTerminal ? Interruption([SIGINT, SIGTERM, SIGQUIT, SIGHUP]) : nil }

    /// Whether the user interrupts the program before something ends that can be cancelled. Where no person answers,
    /// an interrupt ends the program.
    func isInterrupted(before end: @escaping @Sendable () async -> Void) async -> Bool {
        if let interruption { return await interruption.wait(for: end) }
        await end()
        return false
    }

    func say(_ text: String) {
        for line in text.split(separator: "\n") {
            StandardFiles.sayToPerson(Output.oneLine(String(line)) + "\n")
        }
    }

    /// The answer; nil where the input has ended, or the user has interrupted the program.
    ///
    /// - Parameter isSecret: Whether the terminal does not show what is typed.
    func ask(_ question: String, isSecret: Bool) async throws -> String? {
        if isTerminal { StandardFiles.sayToPerson(Output.oneLine(question) + ": ") }
        let echo = isSecret && isTerminal ? Echo() : nil
        defer {
            if let echo {
                echo.restore()
                StandardFiles.sayToPerson("\n")
            }
        }
        guard let interruption else { return try Self.line() }
        // The terminal's interrupt key must leave it as it was. A thread that reads cannot be ended, and is left behind.
        let (answers, answer) = AsyncThrowingStream.makeStream(of: String?.self)
        Thread.detachNewThread {
            answer.yield(with: Result { try Self.line() })
            answer.finish()
        }
        let waiting = Task {
            await interruption.wait()
            answer.finish()
        }
        defer { waiting.cancel() }
        // The key that would have suspended the program is a character then.
        for try await line in answers { return echo == nil ? line : line?.filter { $0 != "\u{1A}" } }
        return nil
    }

    /// A line, byte by byte: what follows is left for who reads next.
    private static func line() throws -> String? {
        var (bytes, byte): ([UInt8], UInt8) = ([], 0)
        while true {
            let count = read(STDIN_FILENO, &byte, 1)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return bytes.isEmpty ? nil : try text(bytes) }
            if byte == UInt8(ascii: "\n") { return try text(bytes) }
            bytes.append(byte)
            guard bytes.count <= maximumSize else {
                throw Failure(usage: "A line of standard input has more than \(maximumSize) bytes")
            }
        }
    }

    private static func text(_ bytes: [UInt8]) throws -> String {
        let line = bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes[...]
        guard let text = String(validating: line, as: UTF8.self) else {
            throw Failure(usage: "A line of standard input is not UTF-8")
        }
        return text
    }

    /// The terminal without its echo. It cannot be suspended meanwhile: a shell that takes the terminal back, and gives
    /// it again, would have set the echo.
    private struct Echo {
        private var old = termios()

        /// Nil where it cannot be turned off: then it is the terminal's own.
        init?() {
            guard tcgetattr(STDIN_FILENO, &old) == 0 else { return nil }
            var new = old
            new.c_lflag &= ~tcflag_t(ECHO)
            let none = fpathconf(STDIN_FILENO, Int32(_PC_VDISABLE))
            withUnsafeMutableBytes(of: &new.c_cc) { $0[Int(VSUSP)] = UInt8(truncatingIfNeeded: none) }
            guard tcsetattr(STDIN_FILENO, TCSAFLUSH, &new) == 0 else { return nil }
        }

        func restore() {
            var old = old
            _ = tcsetattr(STDIN_FILENO, TCSANOW, &old)
        }
    }
}
