#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

// Apple's other systems start no programs.
#if os(macOS) || os(Linux)
/// A program that was started without a shell, in a process group of its own, whose output is read as it comes.
///
/// Foundation's `Process` learns of the end of a program by a socket that whatever is started at the same time has as
/// well, and so may never learn of it.
package final class ChildProcess {
    /// What it has written to its standard output and its standard error, as far as `read` has come.
    package var output: [UInt8] { outputReader.bytes }
    package var complaint: [UInt8] { complaintReader.bytes }
    private let child: pid_t
    private let (outputReader, complaintReader): (PipeReader, PipeReader)

    /// - Parameters:
    ///   - input: At most 4 KiB, what a socket takes without a reader: it is all written before the program begins,
    ///     which may end without reading it.
    ///   - limit: Bytes that are read of each output.
    package init(
        _ path: String, _ arguments: [String], environment: [String: String], input: [UInt8], readingAtMost limit: Int
    ) throws(FileError) {
        func failure(_ status: Int32, _ doing: String = "Starting a program") -> FileError {
            FileError(status, doing: doing, path: path)
        }
        guard input.count <= 4096 else { throw failure(EMSGSIZE) }
        guard let standardInput = DescriptorPair(), let output = DescriptorPair(), let complaint = DescriptorPair()
        else { throw failure(errno) }
        let written = input.withUnsafeBytes { write(standardInput.writing, $0.baseAddress, $0.count) }
        guard written == input.count else { throw failure(EIO, "Giving a program its input") }
        standardInput.endWriting()
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
        for (number, descriptor) in zip(Int32(0)..., [standardInput.reading, output.writing, complaint.writing]) {
            posix_spawn_file_actions_adddup2(&actions, descriptor, number)
        }
        posix_spawnattr_setpgroup(&attributes, 0)
        // A program that does not hear of signals would go on for ever, and what it starts as well.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        #if canImport(Darwin)
        // Close-on-exec cannot be set there as a descriptor is made: another thread's may lack it at this moment.
        let others = POSIX_SPAWN_CLOEXEC_DEFAULT
        #else
        let others: Int32 = 0
        #endif
        posix_spawnattr_setflags(
            &attributes, Int16(truncatingIfNeeded: Int32(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK) | others))
        // Safe: the copies of the texts live until the program has been started, which has copies of its own.
        var texts = ([path] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in texts + variables { free(text) } }
        var child: pid_t = 0
        let status = posix_spawn(&child, path, &actions, &attributes, &texts, &variables)
        guard status == 0 else { throw failure(status) }
        self.child = child
        for pair in [output, complaint] { pair.closeWriting() }
        (outputReader, complaintReader) = (PipeReader(output, limit), PipeReader(complaint, limit))
    }

    /// Reads what the program has written, and waits for nothing.
    package func read() {
        outputReader.read()
        complaintReader.read()
    }

    /// How it ended, a signal's number below zero; nil while it runs. To be asked no more once it has answered.
    package func status() -> Int32? {
        var status: Int32 = 0
        let answer = waitpid(child, &status, WNOHANG)
        if answer == 0 || answer < 0 && errno == EINTR { return nil }
        // Another part of the program has waited for the child: how the child ended is unknown.
        guard answer == child else { return -1 }
        let signal = status & 0x7F
        return signal == 0 ? status >> 8 & 0xFF : -signal
    }

    /// Ends it, and what it has started, and waits a second at most for the system to say so.
    package func end() {
        kill(-child, SIGKILL)
        for _ in 0..<500 where status() == nil { usleep(2000) }
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
    private let pair: DescriptorPair
    private let limit: Int
    private(set) var bytes: [UInt8] = []

    init(_ pair: DescriptorPair, _ limit: Int) {
        (self.pair, self.limit) = (pair, limit)
        _ = fcntl(pair.reading, F_SETFL, O_NONBLOCK)
    }

    func read() {
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            // Safe: no more is read than the buffer takes.
            while bytes.count <= limit {
                let count = systemRead(pair.reading, buffer.baseAddress, buffer.count)
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
#endif
