import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@Suite("Programs that are started", .timeLimit(.minutes(5)))
struct ChildProcessTests {
    /// Starts a script of the shell's.
    private func start(_ script: String, input: [UInt8] = []) throws -> ChildProcess {
        try ChildProcess(
            "/bin/sh", ["-c", script], environment: ["PATH": "/usr/bin:/bin"], input: input, readingAtMost: 1_000)
    }

    /// Waits until a program has ended.
    private func end(of child: ChildProcess) async throws -> Int32? {
        var status: Int32?
        try await eventually {
            status = child.status()
            return status != nil
        }
        return status
    }

    @Test("Of what a program writes no more is read than was asked for")
    func limit() throws {
        let child = try start("head -c 3000000 /dev/zero")
        defer { child.end() }
        let deadline = SuspendingClock.now + .seconds(60)
        while child.output.count <= 1_000, .now < deadline {
            child.read()
            usleep(1_000)
        }
        // It goes on to write where it is read.
        for _ in 0..<50 {
            child.read()
            usleep(1_000)
        }
        #expect(child.output.count > 1_000 && child.output.count <= 1_000 + 4_096)
        #expect(child.status() == nil && child.complaint.isEmpty)
    }

    @Test("A program is given up to 4 KiB of input, and no more")
    func inputLimit() async throws {
        let script = "wc -c; exit 3"
        let child = try start(script, input: Array(repeating: 1, count: 4_096))
        try await eventually {
            child.read()
            return String(decoding: child.output, as: UTF8.self).contains("4096")
        }
        try await eventually { child.status() == 3 }
        let error = #expect(throws: FileError.self) {
            _ = try start(script, input: Array(repeating: 1, count: 4_097))
        }
        #expect(error?.status == EMSGSIZE)
    }

    @Test("A program that a signal has ended says which by a number below zero", arguments: [SIGTERM, SIGKILL])
    func signal(number: Int32) async throws {
        let status = try await end(of: start("kill -\(number) $$"))
        #expect(status == -number)
    }

    @Test("A program hears of signals of which the thread that starts it hears nothing")
    func signalMask() async throws {
        func startBlocking() throws -> ChildProcess {
            var (blocked, earlier) = (sigset_t(), sigset_t())
            sigemptyset(&blocked)
            sigaddset(&blocked, SIGTERM)
            pthread_sigmask(SIG_BLOCK, &blocked, &earlier)
            defer { pthread_sigmask(SIG_SETMASK, &earlier, nil) }
            return try start("kill -TERM $$; exit 3")
        }
        let status = try await end(of: startBlocking())
        #expect(status == -SIGTERM)
    }

    @Test("To end a program ends the processes that it has started")
    func group() async throws {
        try await withTemporaryFolder { folder in
            let pipe = folder.appending(path: "pipe").path
            #expect(mkfifo(pipe, 0o600) == 0)
            // The shell waits for a program that has the pipe open.
            let child = try start("sleep 60 > \(pipe) & wait")
            let reader = open(pipe, O_RDONLY | O_NONBLOCK)
            defer { close(reader) }
            var byte: UInt8 = 0
            try await eventually { read(reader, &byte, 1) < 0 && errno == EAGAIN }
            child.end()
            let end = SuspendingClock.now
            try await eventually { read(reader, &byte, 1) == 0 }
            #expect(.now - end < .seconds(30))
        }
    }
}
