import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

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
    /// - Parameter input: At most what a socket takes without a reader: it is all written before the program begins,
    ///   which may end without reading it.
    func answer(to input: [UInt8], until deadline: ContinuousClock.Instant) async throws(KeyError) -> Answer {
        guard input.count <= 4096 else { throw KeyError(.notWritable, "too many keys for \(purpose); drop older ones") }
        guard let standardInput = DescriptorPair(), let output = DescriptorPair(), let complaint = DescriptorPair()
        else {
            throw KeyError(.unsupported, "\(program) cannot be started: no socket can be made")
        }
        let written = input.withUnsafeBytes { write(standardInput.writing, $0.baseAddress, $0.count) }
        guard written == input.count else {
            throw KeyError(.notWritable, "\(program) cannot be given its input")
        }
        standardInput.endWriting()
        let child = try start([standardInput.reading, output.writing, complaint.writing])
        for pair in [output, complaint] { pair.closeWriting() }
        let (said, complained) = (PipeReader(output.reading), PipeReader(complaint.reading))
        var status: Int32?
        while status == nil, .now < deadline, !Task.isCancelled {
            said.read()
            complained.read()
            status = Self.status(of: child)
            // A program that writes this much is not the one expected, and would wait for its output to be read.
            guard said.bytes.count <= KeyText.longest else { break }
            if status == nil { try? await Task.sleep(for: .milliseconds(2)) }
        }
        guard let status else {
            // With whatever it has started.
            kill(-child, SIGKILL)
            for _ in 0..<500 where Self.status(of: child) == nil { usleep(2000) }
            if said.bytes.count > KeyText.longest { return Answer(status: 0, output: said.bytes, complaint: "") }
            if Task.isCancelled { throw KeyError(.cancelled, "the task was cancelled") }
            throw KeyError(
                .timedOut,
                "\(program) has not answered for \(purpose) by the deadline and was ended; "
                    + "unlock the keyring if it asks for a password")
        }
        said.read()
        complained.read()
        let lines = String(decoding: complained.bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        return Answer(
            status: status, output: said.bytes, complaint: lines.first.map { String($0.prefix(200)) } ?? "")
    }

    /// Starts the program in a process group of its own. Foundation's `Process` learns of the end of a program by a
    /// socket that whatever is started at the same time has as well, and so may never learn of it.
    ///
    /// - Parameter descriptors: Its standard input, output and error.
    private func start(_ descriptors: [Int32]) throws(KeyError) -> pid_t {
        #if canImport(Darwin)
        var (actions, attributes): (posix_spawn_file_actions_t?, posix_spawnattr_t?) = (nil, nil)
        #else
        var (actions, attributes) = (posix_spawn_file_actions_t(), posix_spawnattr_t())
        #endif
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        for (number, descriptor) in zip(Int32(0)..., descriptors) {
            posix_spawn_file_actions_adddup2(&actions, descriptor, number)
        }
        posix_spawnattr_setpgroup(&attributes, 0)
        // A program that does not hear of signals would go on for ever, and what it starts as well.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        let path = try executable().path
        // Safe: the copies of the texts live until the program has been started, which has copies of its own.
        var texts = ([path] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in texts + variables { free(text) } }
        var child: pid_t = 0
        let failure = posix_spawn(&child, path, &actions, &attributes, &texts, &variables)
        guard failure == 0 else {
            throw KeyError(.unsupported, "\(program) cannot be started: \(String(cString: strerror(failure)))")
        }
        return child
    }

    /// How a program ended, a signal's number below zero; nil while it runs.
    private static func status(of child: pid_t) -> Int32? {
        var status: Int32 = 0
        let answer = waitpid(child, &status, WNOHANG)
        if answer == 0 || answer < 0 && errno == EINTR { return nil }
        // Another part of the program has waited for the child: how the child ended is unknown.
        guard answer == child else { return -1 }
        let signal = status & 0x7F
        return signal == 0 ? status >> 8 & 0xFF : -signal
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

/// Two sockets that no program inherits unless it is given one. Closed with the last reference to them.
private final class DescriptorPair {
    let reading: Int32
    private(set) var writing: Int32

    init?() {
        var pair: [Int32] = [-1, -1]
        #if canImport(Darwin)
        guard socketpair(AF_UNIX, SOCK_STREAM, 0, &pair) == 0 else { return nil }
        for descriptor in pair { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        #elseif canImport(Glibc)
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &pair) == 0 else { return nil }
        #else
        guard socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &pair) == 0 else { return nil }
        #endif
        (reading, writing) = (pair[0], pair[1])
    }

    /// Lets the reader see the end, also where another process has the socket.
    func endWriting() {
        _ = shutdown(writing, Int32(SHUT_WR))
        closeWriting()
    }

    func closeWriting() {
        guard writing >= 0 else { return }
        close(writing)
        writing = -1
    }

    deinit {
        closeWriting()
        close(reading)
    }
}

/// Reads the bytes that are there, and waits for nothing.
private final class PipeReader {
    private let descriptor: Int32
    private(set) var bytes: [UInt8] = []

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
    }

    func read() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            // Safe: no more is read than the buffer takes.
            while bytes.count <= KeyText.longest {
                let count = systemRead(descriptor, buffer.baseAddress, buffer.count)
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
