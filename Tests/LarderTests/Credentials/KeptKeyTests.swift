import Crypto
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
