import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite(
    "Processes against each other", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct ContentionTests {
    @Test(
        "Two processes that switch, refresh and migrate a hundred times refresh nothing twice, and none waits too long")
    func rounds() async throws {
        try await withTemporaryFolder { folder in
            let (place, ledgers, count) = (folder.appending(path: "store"), folder.appending(path: "ledgers"), 100)
            try FileManager.default.createDirectory(at: ledgers, withIntermediateDirectories: true)
            let schema = try Schema(parsing: "type Query { recipe: Int }")
            let store = try Store.open(at: place, schema: schema)
            for name in ["a", "b"] {
                let app = try await store.switch(to: backend(name)).partition
                let token = try TokenLedger(ledgers.appending(path: name)).begin()
                // Too short to be used: whoever asks first refreshes it.
                try await app.session.signIn(
                    Credentials(
                        userPool: .init(
                            idToken: "id", accessToken: "access", refreshToken: token, expires: Date())),
                    within: .seconds(10))
            }
            try store.close()

            let seed = TestSeed.of("contention")
            let said = (0..<2).map { folder.appending(path: "said \($0)") }
            let children = try (0..<2).map {
                try ChildProgram.start(
                    place, "contend", ledgers.path, "\(count)", "\(seed + UInt64($0))", output: said[$0])
            }
            for child in children {
                await child.ended()
                #expect(child.terminationReason == .exit && child.terminationStatus == 0, "seed \(seed)")
            }
            for said in said { #expect(try ChildProgram.lines(of: said).count == count, "seed \(seed)") }
            var refreshes = 0
            for name in ["a", "b"] {
                let lines = try TokenLedger(ledgers.appending(path: name)).lines()
                #expect(lines == (0..<lines.count).map { "issued \($0)" }, "seed \(seed)")
                refreshes += lines.count - 1
            }
            #expect(refreshes >= 2, "seed \(seed)")
            let again = try Store.open(at: place, schema: schema)
            #expect(try again.operationsDatabase().check().problems == [])
            for name in ["a", "b"] {
                #expect(try await again.switch(to: backend(name)).partition.session.state == .signedIn)
            }
            try again.close()
        }
    }
}
