import Crypto
import Dispatch
import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Keys as they are kept, and programs that keep them", .timeLimit(.minutes(5)))
struct KeptKeyTests {
    @Test("A line whose id is another key's is damaged, though the sum of the file is right")
    func foreignID() throws {
        let keys = MasterKeys(current: MasterKey(), previous: [MasterKey()])
        let text = KeyText(keys).text
        let body = String(text[..<(try #require(text.range(of: "sum "))).lowerBound])
        func parsed(_ body: String) throws -> MasterKeys {
            let sum = SHA256.hash(data: Data(body.utf8)).map { String(format: "%02x", $0) }.joined()
            return try KeyText(parsing: Array("\(body)sum \(sum)\n".utf8), of: "the test").keys
        }
        #expect(try parsed(body) == keys)
        let error = #expect(throws: KeyError.self) {
            _ = try parsed(body.replacing(keys.current.id, with: keys.previous[0].id))
        }
        #expect(error?.code == .damaged)
    }

    @Test(
        "The keys of a store are beside its folder, in whatever way its path is written",
        arguments: ["/a/store", "/a/store/", "/a/store/.", "/a/b/../store"])
    func besideStore(path: String) {
        #expect(FileKeyProvider.defaultFile(of: URL(filePath: path)).path == "/a/store.key")
    }

    @Test("A key file lists its current key first")
    func firstKey() throws {
        let keys = MasterKeys(current: MasterKey(), previous: [MasterKey(), MasterKey()])
        let text = KeyText(keys).text
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("key ") }
        #expect(lines.map { String($0.split(separator: " ")[1]) } == keys.all.map(\.id))
        #expect(try KeyText(parsing: Array(text.utf8), of: "the test").keys == keys)
    }

    @Test("A key file says first what it is, and what it is for, as the article shows it")
    func firstLines() throws {
        let article = try String(
            contentsOf: packageRoot.appending(path: "Sources/Larder/Larder.docc/KeepingCredentials.md")
                .resolvingSymlinksInPath(), encoding: .utf8)
        let text = KeyText(MasterKeys(current: MasterKey())).text
        let lines = text.split(separator: "\n").prefix(2).joined(separator: "\n")
        #expect(article.contains("```\n\(lines)\nkey "))
    }

    @Test("A change of a key file that waits for another process ends with its task, and changes nothing")
    func cancelled() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            let made = try await provider.makeKey(within: soon)
            let lock = try LockFile(existing: provider.file.path, in: FileSystem())
            #expect(try lock.tryLock(.exclusive))
            let adding = Task { try await provider.addKey(within: soon) }
            adding.cancel()
            let error = await #expect(throws: KeyError.self) { _ = try await adding.value }
            #expect(error?.code == .cancelled)
            #expect(try await provider.keys(within: soon) == made)
            withExtendedLifetime(lock) {}
        }
    }

    private static let secret = Credentials(userPool: .init(idToken: "i", accessToken: "a", expires: nil))

    @Test("A damaged key file leaves credentials unavailable and their user signed in, until the file is back")
    func damagedFile() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "k"))
            try await withSessions { bench in
                try await bench.session(keys: provider).signIn(Self.secret, within: soon)
                let whole = try Data(contentsOf: provider.file)
                let handle = try FileHandle(forWritingTo: provider.file)
                try handle.truncate(atOffset: UInt64(whole.count - 1))
                let session = bench.session(keys: provider)
                let reading = try await session.storedCredentials(within: soon)
                #expect(reading == .unavailable(KeyError(.damaged, "")))
                #expect(session.state == .signedIn)
                #expect(try session.status().quarantined == [])
                try handle.seek(toOffset: 0)
                try handle.write(contentsOf: whole)
                try handle.close()
                #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
            }
        }
    }

    /// Blocks the thread of each call until the test sets `isReleased`.
    private struct BlockingKeys: KeyProvider {
        let isReleased = Flag()
        let description = "keys that block"

        private func block() -> MasterKeys {
            while !isReleased.isSet { usleep(1_000) }
            return MasterKeys(current: MasterKey())
        }

        func keys(within time: Duration) async throws(KeyError) -> MasterKeys { block() }
        func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys { block() }
        func addKey(within time: Duration) async throws(KeyError) -> MasterKeys { block() }
        func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {}
    }

    @Test("A key provider that blocks its threads delays no other work, and no caller past its deadline")
    func blocking() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            let keys = BlockingKeys()
            defer { keys.isReleased.set() }
            // If the calls blocked Swift's own threads, nothing would run before this release.
            DispatchQueue.global().asyncAfter(deadline: .now() + 30) { keys.isReleased.set() }
            // More calls than Swift has threads.
            for _ in 0...ProcessInfo.processInfo.processorCount {
                let reading = try await bench.session(keys: keys).storedCredentials(within: .milliseconds(1))
                #expect(reading == .unavailable(KeyError(.timedOut, "")))
            }
            for priority in [TaskPriority.high, .medium] { await Task(priority: priority) {}.value }
            #expect(!keys.isReleased.isSet)
        }
    }

    @Test(
        "A key file that cannot be opened or read is reported as unreadable, with the file error as the cause",
        arguments: [(FileCall.Kind.open, EACCES), (.status, EIO), (.read, EIO)])
    func unreadable(kind: FileCall.Kind, status: Int32) async throws {
        try await withTemporaryFolder { folder in
            var provider = FileKeyProvider(file: folder.appending(path: "k"))
            _ = try await provider.makeKey(within: soon)
            provider.files = FileSystem(injecting: { $0.kind == kind ? .failure(status) : nil })
            let failing = provider
            let error = await #expect(throws: KeyError.self) { _ = try await failing.keys(within: soon) }
            #expect(error?.code == .unreadable && error?.cause is FileError, "\(error as Any)")
        }
    }

    @Test("A key file that cannot be written is reported as not writable, with the file error as the cause")
    func unwritable() async throws {
        try await withTemporaryFolder { folder in
            var provider = FileKeyProvider(file: folder.appending(path: "k"))
            provider.files = FileSystem(injecting: { $0.kind == .write ? .failure(ENOSPC) : nil })
            let failing = provider
            let error = await #expect(throws: KeyError.self) { _ = try await failing.makeKey(within: soon) }
            #expect(error?.code == .notWritable && error?.cause is FileError, "\(error as Any)")
        }
    }

    @Test(
        "A change of a key file fails where the new file, or its name, cannot be put on the disk",
        arguments: [FileCall.Kind.synchronize, .synchronizeFolder])
    func durable(kind: FileCall.Kind) async throws {
        try await withTemporaryFolder { folder in
            var provider = FileKeyProvider(file: folder.appending(path: "k"))
            _ = try await provider.makeKey(within: soon)
            provider.files = FileSystem(injecting: { $0.kind == kind ? .failure(EIO) : nil })
            let failing = provider
            let error = await #expect(throws: KeyError.self) { _ = try await failing.addKey(within: soon) }
            #expect(error?.code == .notWritable && error?.cause is FileError, "\(error as Any)")
        }
    }

    @Test("A key file is on the disk before it has its name, and its name is there before the key is given out")
    func durable() async throws {
        try await withTemporaryFolder { folder in
            let recorded = InjectedFaults(at: .max) { _ in nil }
            var provider = FileKeyProvider(file: folder.appending(path: "k"))
            provider.files = recorded.files
            _ = try await provider.makeKey(within: soon)
            let made = recorded.calls.map(\.kind)
            _ = try await provider.addKey(within: soon)
            let added = Array(recorded.calls.map(\.kind).dropFirst(made.count))
            for (kinds, naming) in [(made, FileCall.Kind.link), (added, .rename)] {
                let expected: [FileCall.Kind] = [.write, .synchronize, naming, .synchronizeFolder]
                let steps = kinds.filter { expected.contains($0) }
                #expect(Array(steps.suffix(4)) == expected, "\(steps)")
            }
        }
    }

    @Test("A key file is made with the folders that it is to lie in")
    func madeFolders() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(file: folder.appending(path: "keys/movies/k"))
            let made = try await provider.makeKey(within: soon)
            #expect(try await provider.keys(within: soon) == made)
        }
    }

    #if os(macOS) || os(Linux)
    @Test("Of what a program complains its first line is told, and no more than 200 letters of it")
    func complaint() async throws {
        func complaint(_ script: String) async throws -> String {
            try await ToolRun(program: "/bin/sh", arguments: ["-c", script], environment: [:], of: "the test")
                .answer(to: [], until: .now + soon).complaint
        }
        #expect(try await complaint("echo 'no room' >&2; echo 'and more' >&2") == "no room")
        #expect(try await complaint("echo 'no room'") == "")
        let long = try await complaint("printf '%0300d' 7 >&2")
        #expect(long == String(repeating: "0", count: 200))
    }
    #endif
}
