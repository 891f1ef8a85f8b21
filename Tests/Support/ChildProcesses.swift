public import Foundation
import Synchronization

/// A child inherits what another thread opens while it is started: on Linux, Foundation closes what was open before.
/// So a server that goes on would keep open the socket by which Foundation learns of another child's end.
private let starting = Mutex<Void>(())

extension Process {
    /// Starts the program beside no other that is started so.
    public func start() throws { try starting.withLock { _ in try run() } }

    /// Starts the program with files that are there for what it reads and prints. They are open in the program alone:
    /// Foundation keeps a process that has ended, and what it was given.
    public func start(reading input: URL? = nil, printing output: URL, _ errors: URL? = nil) throws {
        var handles: [FileHandle] = []
        defer { for handle in handles { try? handle.close() } }
        func open(_ handle: FileHandle) -> FileHandle {
            handles.append(handle)
            return handle
        }
        if let input { standardInput = open(try FileHandle(forReadingFrom: input)) }
        standardOutput = open(try FileHandle(forWritingTo: output))
        if let errors { standardError = open(try FileHandle(forWritingTo: errors)) }
        try start()
    }

    /// Waits until the program has ended, and gives its thread to others meanwhile: there are only as many as there are
    /// processors, and a test that holds one keeps all the others waiting. A test whose time is over kills the program.
    public func ended() async {
        var killed: SuspendingClock.Instant?
        while isRunning {
            if let killed, .now > killed + .seconds(30) {
                preconditionFailure("Process \(processIdentifier) was killed, and its end is not noticed")
            }
            if killed == nil, Task.isCancelled {
                kill(processIdentifier, SIGKILL)
                killed = .now
            }
            // Not this task's sleep, which would return at once where it is cancelled.
            await Task.detached { try? await Task.sleep(for: .milliseconds(2)) }.value
        }
        try? (standardInput as? Pipe)?.fileHandleForWriting.close()
    }
}

extension Pipe {
    /// A pipe that no child inherits but as its standard input or output, so that its end is noticed.
    public static func uninherited() -> Pipe {
        starting.withLock { _ in
            let pipe = Pipe()
            for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
                precondition(fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC) == 0, "a pipe is inherited")
            }
            return pipe
        }
    }
}
