import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite(
    "Refreshing in several processes", .enabled(if: ChildProgram.isBuilt, Comment(rawValue: ChildProgram.requirement)),
    .timeLimit(.minutes(10)))
struct RefreshProcessTests {
    private struct Files {
        let store: URL
        let ledger: TokenLedger
        let clock: URL
        let said: [URL]

        init(_ folder: URL) {
            store = folder.appending(path: "store")
            ledger = TokenLedger(folder.appending(path: "ledger"))
            clock = folder.appending(path: "clock")
            said = (0..<2).map { folder.appending(path: "said-\($0)") }
        }

        func set(hour: Int) throws { try Data("\(hour)".utf8).write(to: clock, options: .atomic) }

        func session(_ database: OperationsDatabase) -> Session {
            Session(
                database: database, partition: "main", identity: "identity", keys: FileKeyProvider(besides: store),
                provider: nil, locksFolder: store.appending(path: "locks"))
        }

        func signIn() async throws -> OperationsDatabase {
            let database = try OperationsDatabase(folder: store)
            try await session(database).signIn(
                Credentials(
                    userPool: .init(
                        idToken: "id", accessToken: "access", refreshToken: try ledger.begin(),
                        expires: Date(timeIntervalSince1970: 1_800_000_000))),
                within: soon)
            return database
        }

        func start(_ index: Int, rounds: Int, _ how: String = "plain") throws -> Process {
            try ChildProgram.start(
                store, "refresh", ledger.file.path, clock.path, "\(rounds)", how, output: said[index])
        }
    }

    @Test("Two processes that refresh against each other a hundred times refresh a hundred times, and none is refused")
    func race() async throws {
        try await withTemporaryFolder { folder in
            let (files, rounds) = (Files(folder), 100)
            let database = try await files.signIn()
            try files.set(hour: 0)
            let children = try (0..<2).map { try files.start($0, rounds: rounds) }
            defer { for child in children where child.isRunning { kill(child.processIdentifier, SIGKILL) } }
            for round in 1...rounds {
                try files.set(hour: round)
                let deadline = SuspendingClock.now + soon
                while try files.said.contains(where: { try ChildProgram.lines(of: $0).count < round }) {
                    try #require(.now < deadline, "round \(round)")
                    try #require(!children.contains { !$0.isRunning && $0.terminationStatus != 0 }, "round \(round)")
                    try await Task.sleep(for: .milliseconds(2))
                }
            }
            for child in children {
                await child.ended()
                #expect(child.terminationReason == .exit)
                #expect(child.terminationStatus == 0)
            }
            #expect(try files.ledger.lines() == (0...rounds).map { "issued \($0)" })
            let expected = (1...rounds).map { "\($0) refresh-\($0)" }
            for said in files.said { #expect(try ChildProgram.lines(of: said) == expected) }
            #expect(files.session(database).state == .signedIn)
            try database.close()
        }
    }

    @Test("Waiting processes name the one that refreshes and hangs; once it is killed, the next one refreshes")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let files = Files(folder)
            let database = try await files.signIn()
            try files.set(hour: 1)
            let hanging = try files.start(0, rounds: 1, "hanging")
            defer { if hanging.isRunning { kill(hanging.processIdentifier, SIGKILL) } }
            try await eventually { try ChildProgram.lines(of: files.said[0]) == ["asked"] }
            // Its own attempt ends before its caller's wait, so that it does not go on when the other is dead.
            var options = Session.Options()
            options.refreshTimeout = .milliseconds(500)
            options.now = { Date(timeIntervalSince1970: 1_800_003_600) }
            let waiting = Session(
                database: database, partition: "main", identity: "identity",
                keys: FileKeyProvider(besides: files.store),
                provider: InMemoryIdentityProvider(), locksFolder: files.store.appending(path: "locks"),
                options: options)
            let error = await #expect(throws: LarderError.self) {
                _ = try await waiting.credentials(within: soon)
            }
            #expect(error?.code == .timedOut)
            #expect(error?.message.contains("process \(hanging.processIdentifier) (larder)") == true, "\(error as Any)")
            kill(hanging.processIdentifier, SIGKILL)
            await hanging.ended()
            let child = try files.start(1, rounds: 1)
            await child.ended()
            #expect(try ChildProgram.lines(of: files.said[1]) == ["1 refresh-1"])
            try database.close()
        }
    }
}
