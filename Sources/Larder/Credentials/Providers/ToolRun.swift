#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif
internal import Foundation

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
    /// - Parameter input: At most what a pipe takes without a reader: it is all written before the program begins, which
    ///   may end without reading it.
    func answer(to input: [UInt8], until deadline: ContinuousClock.Instant) async throws(KeyError) -> Answer {
        let process = Process()
        process.executableURL = try executable()
        process.arguments = arguments
        process.environment = environment
        let (standardInput, output, complaint) = (Pipe(), Pipe(), Pipe())
        process.standardInput = standardInput
        process.standardOutput = output
        process.standardError = complaint
        for pipe in [standardInput, output, complaint] {
            // What is to be read stays with whatever the program has started and left behind.
            for handle in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
                _ = fcntl(handle.fileDescriptor, F_SETFD, FD_CLOEXEC)
            }
        }
        for pipe in [output, complaint] { _ = fcntl(pipe.fileHandleForReading.fileDescriptor, F_SETFL, O_NONBLOCK) }
        do {
            guard input.count <= 4096 else { throw KeyError(.notWritable, "too many keys for \(purpose); drop older ones") }
            try standardInput.fileHandleForWriting.write(contentsOf: Data(input))
            try standardInput.fileHandleForWriting.close()
            try process.run()
        } catch {
            throw error as? KeyError ?? KeyError(.unsupported, "\(program) cannot be started", cause: error)
        }
        let (said, complained) = (
            PipeReader(output.fileHandleForReading), PipeReader(complaint.fileHandleForReading))
        while process.isRunning, .now < deadline, !Task.isCancelled {
            said.read()
            complained.read()
            try? await Task.sleep(for: .milliseconds(2))
        }
        if process.isRunning {
            kill(process.processIdentifier, SIGKILL)
            process.waitUntilExit()
            if Task.isCancelled { throw KeyError(.cancelled, "the task was cancelled") }
            throw KeyError(
                .timedOut, "\(program) has not answered for \(purpose) by the deadline and was ended; "
                    + "unlock the keyring if it asks for a password")
        }
        said.read()
        complained.read()
        let lines = String(decoding: complained.bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        return Answer(
            status: process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus,
            output: said.bytes, complaint: lines.first.map { String($0.prefix(200)) } ?? "")
    }
    #else
    func answer(to input: [UInt8], until deadline: ContinuousClock.Instant) async throws(KeyError) -> Answer {
        throw KeyError(.unsupported, "no programs can be started here; use another key provider")
    }
    #endif

    private func executable() throws(KeyError) -> URL {
        if program.contains("/") { return URL(filePath: program) }
        for folder in (environment["PATH"] ?? "").split(separator: ":") {
            let file = URL(filePath: String(folder)).appending(path: program)
            if FileManager.default.isExecutableFile(atPath: file.path) { return file }
        }
        throw KeyError(
            .unsupported, "there is no program \(program) here; install it (libsecret-tools), or use a key file")
    }
}

/// Reads what is there, and waits for nothing.
private final class PipeReader {
    private let handle: FileHandle
    private(set) var bytes: [UInt8] = []

    init(_ handle: FileHandle) { self.handle = handle }

    func read() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            // Safe: no more is read than the buffer takes.
            while bytes.count <= KeyText.longest {
                let count = systemRead(handle.fileDescriptor, buffer.baseAddress, buffer.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return }
                bytes += buffer[..<count]
            }
        }
    }
}

private func systemRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ count: Int) -> Int {
    read(descriptor, buffer, count)
}
