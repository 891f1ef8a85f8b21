import Foundation
import LarderFiles

/// One run of a program that keeps keys: no shell, and no longer than its deadline.
struct ToolRun {
    struct Answer {
        var status: Int32
        var output: [UInt8]
        /// What it wrote to its standard error: the first line.
        var complaint: String
    }

    let program: String
    let arguments: [String]
    let environment: [String: String]
    /// Whom it is asked for, for errors.
    let purpose: String

    init(program: String, arguments: [String], environment: [String: String], of purpose: String) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.purpose = purpose
    }

    #if os(macOS) || os(Linux)
    /// - Parameter input: At most what `ChildProcess` takes.
    func answer(to input: [UInt8], until deadline: SuspendingClock.Instant) async throws(KeyError) -> Answer {
        guard input.count <= 4096 else { throw KeyError(.notWritable, "Too many keys for \(purpose); drop older ones") }
        let child: ChildProcess
        let path = try executable().path
        do throws(FileError) {
            child = try ChildProcess(
                path, arguments, environment: environment, input: input, readingAtMost: KeyText.longest)
        } catch { throw KeyError(.unsupported, "\(program) cannot be started: \(error.reason)") }
        var status: Int32?
        while status == nil, .now < deadline, !Task.isCancelled {
            child.read()
            status = child.status()
            // A program that writes this much is not the one expected, and would wait for its output to be read.
            guard child.output.count <= KeyText.longest else { break }
            if status == nil { try? await Task.sleep(for: .milliseconds(2)) }
        }
        guard let status else {
            child.end()
            if child.output.count > KeyText.longest { return Answer(status: 0, output: child.output, complaint: "") }
            if Task.isCancelled { throw KeyError(.cancelled, "The task was cancelled") }
            throw KeyError(
                .timedOut,
                "\(program) has not answered for \(purpose) by the deadline and was ended; "
                    + "unlock the keyring if it asks for a password")
        }
        child.read()
        let lines = String(decoding: child.complaint, as: UTF8.self).split(whereSeparator: \.isNewline)
        return Answer(
            status: status, output: child.output, complaint: lines.first.map { String($0.prefix(200)) } ?? "")
    }
    #else
    func answer(to input: [UInt8], until deadline: SuspendingClock.Instant) async throws(KeyError) -> Answer {
        throw KeyError(.unsupported, "No programs can be started here; use another key provider")
    }
    #endif

    private func executable() throws(KeyError) -> URL {
        if program.contains("/") { return URL(filePath: program) }
        for folder in (environment["PATH"] ?? "").split(separator: ":") {
            let file = URL(filePath: String(folder)).appending(path: program)
            if FileSystem().isExecutable(file.path) { return file }
        }
        throw KeyError(
            .unsupported, "There is no program \(program) here; install it (libsecret-tools), or use a key file")
    }
}
