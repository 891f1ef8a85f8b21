import Foundation
import Larder
import LarderAWS
import LarderOperations
import LarderTestSupport
import Testing

@Suite(
    "Processes that refresh one user's tokens of Cognito", .timeLimit(.minutes(10)),
    .enabled(
        if: BuiltProgram.exists("larder-crash") && ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct RefreshingProcessTests {
    /// A store with a user of a Cognito that rotates refresh tokens.
    private struct Scene {
        let folder: URL
        let fixture: CognitoFixture
        let store: URL

        init(_ folder: URL, _ fixture: CognitoFixture) async throws {
            (self.folder, self.fixture) = (folder, fixture)
            store = folder.appending(path: "store")
            let database = try OperationsDatabase(folder: store)
            let session = Session(
                database: database, partition: "main", identity: "identity", keys: FileKeyProvider(besides: store),
                provider: nil, locksFolder: store.appending(path: "locks"))
            try await session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
            try database.close()
        }

        /// Starts a process, and waits until it is about to refresh.
        func start(_ name: String, _ how: String = "plain") async throws -> Child {
            let child = Child(process: Process(), said: folder.appending(path: name))
            child.process.executableURL = BuiltProgram.file("larder-crash")
            child.process.arguments = [
                store.path, "cognito", fixture.url.absoluteString, CognitoFixture.poolID,
                folder.appending(path: "go-\(name)").path, how,
            ]
            // It ends with this process: nothing is written there.
            child.process.standardInput = Pipe.uninherited()
            try Data().write(to: child.said)
            let output = try FileHandle(forWritingTo: child.said)
            child.process.standardOutput = output
            try child.process.start()
            try output.close()
            try await eventually { child.lines == ["ready"] }
            return child
        }

        func go(_ name: String) throws { try Data().write(to: folder.appending(path: "go-\(name)")) }

        func requests() async throws -> Int {
            try await fixture.control().count { $0 == "GetTokensFromRefreshToken" }
        }
    }

    private struct Child {
        let process: Process
        let said: URL

        var lines: [String] {
            (try? String(contentsOf: said, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
        }

        /// What it said last, when it has ended.
        func end() async -> String? {
            await process.ended()
            return lines.last
        }

        func die() async {
            if process.isRunning { kill(process.processIdentifier, SIGKILL) }
            await process.ended()
        }
    }

    private func withScene(grace: Int, _ body: (Scene) async throws -> Void) async throws {
        try await CognitoFixture.run(rotates: true) { fixture in
            try await fixture.control(#"{"grace": \#(grace)}"#)
            try await withTemporaryFolder { folder in try await body(try await Scene(folder, fixture)) }
        }
    }

    @Test("Two processes refresh at once with rotation on: one request, one new token, both signed in")
    func together() async throws {
        try await withScene(grace: 0) { scene in
            let (first, second) = (try await scene.start("a"), try await scene.start("b"))
            try scene.go("a")
            try scene.go("b")
            let (one, other) = (await first.end(), await second.end())
            #expect(one == other && one?.hasPrefix("signedIn ") == true, "\(one ?? "") \(other ?? "")")
            #expect(try await scene.requests() == 1)
        }
    }

    @Test(
        "After a kill between Cognito's answer and its storage nobody is signed out within the grace period",
        arguments: [(60, "signedIn "), (0, "userPoolTokensInvalid larder.notSignedIn")])
    func killed(grace: Int, end: String) async throws {
        try await withScene(grace: grace) { scene in
            let dying = try await scene.start("a", "stopping")
            try scene.go("a")
            try await eventually { dying.lines.last == "answered" }
            let next = try await scene.start("b")
            await dying.die()
            try scene.go("b")
            let said = await next.end()
            #expect(said?.hasPrefix(end) == true, "\(said ?? "nothing")")
            #expect(try await scene.requests() == 2)
        }
    }
}
