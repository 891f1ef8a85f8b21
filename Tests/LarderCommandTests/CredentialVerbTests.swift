import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Keys and credentials of several partitions, from the command line", .timeLimit(.minutes(10)))
struct CredentialVerbTests {
    /// A store in whose two partitions users are signed in.
    private func withStore(
        _ keys: (any KeyProvider)? = nil, userPool: BackendEnvironment.UserPool? = nil,
        _ body: (_ store: URL, _ partitions: [String]) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            var options = Store.Options()
            options.keys = keys ?? options.keys
            let store = try Store.open(at: place, schemaText: ["type Query { n: Int }"], options: options)
            var partitions: [String] = []
            for name in ["staging", "production"] {
                var environment = try BackendEnvironment.example(name)
                environment.userPool = userPool
                let app = try await store.switch(to: environment, user: .user("ada")).partition
                let tokens = Credentials.UserPoolTokens(
                    idToken: name, accessToken: name, refreshToken: name, expires: nil)
                try await app.session.signIn(Credentials(userPool: tokens), within: .seconds(300))
                partitions.append(try #require(try store.current()).name)
            }
            try store.close()
            try await body(place, partitions)
        }
    }

    /// As `withStore`, with all credentials in quarantine.
    private func withQuarantine(_ body: (_ store: URL, _ partitions: [String]) async throws -> Void) async throws {
        try await withStore { store, partitions in
            try await OperationsDatabase.using(store) { database in
                for name in partitions {
                    let rows = try database.credentials.snapshot(of: name).credentials
                    _ = try await database.credentials.quarantine(
                        rows.map { .init($0, reason: "damaged") }, in: name, of: try #require(rows.first).identity,
                        now: Date(), session: { _ in nil })
                }
            }
            try await body(store, partitions)
        }
    }

    private func larder(_ store: URL, _ arguments: String...) async throws -> Outcome {
        try await LarderProcess.run(arguments + ["--store", store.path])
    }

    @Test("A rotation puts another key in the file, forgets the old one, and users stay signed in")
    func rotate() async throws {
        try await withStore { store, _ in
            let file = URL(filePath: store.path + ".key")
            func keys() throws -> [String] {
                try String(contentsOf: file, encoding: .utf8).matches(of: #/\nkey ([0-9a-f]+) /#).map { String($0.1) }
            }
            let old = try keys()
            let text = try await larder(store, "credentials", "rotate")
            let middle = try keys()
            #expect(
                text.output == "the key is \(middle[0]) now, for the credentials of 2 partitions\n", "\(text.errors)")
            let json = try await larder(store, "credentials", "rotate", "--json")
            let new = try keys()
            #expect(old.count == 1 && middle.count == 1 && new.count == 1 && Set(old + middle + new).count == 3)
            #expect(json.output.contains(#""resealed":2,"unopened":[],"dropped":["\#(middle[0])"]"#), "\(json.output)")
            let opened = try Store.open(at: store, schemaText: ["type Query { n: Int }"])
            let tokens = try await opened.partition().session.userPoolTokens(within: .seconds(300))
            #expect(tokens.refreshToken == "production")
            try opened.close()
        }
    }

    @Test("A rotation names the partitions whose credentials it could not open, and says where there are none at all")
    func unopened() async throws {
        try await withStore(InMemoryKeyProvider()) { store, partitions in
            try await withStore { other, _ in
                try FileManager.default.copyItem(atPath: other.path + ".key", toPath: store.path + ".key")
            }
            let told = try await larder(store, "credentials", "rotate")
            for name in partitions {
                #expect(told.output.contains("\n\(name): its credentials could not be opened, and are as they were"))
            }
            let json = try await larder(store, "credentials", "rotate", "--json")
            let unopened = try #require(json.output.firstMatch(of: /"unopened":\[([^\]]*)\]/)?.1, "\(json)")
            for name in partitions { #expect(unopened.contains("\"\(name)\""), "\(json)") }
        }
        try await CommandFixture.withStore { fixture in
            let none = try await fixture.larder("credentials", "rotate", "--json")
            #expect(none.status == 3 && none.errors.contains("keeps no credentials yet"), "\(none.errors)")
        }
    }

    @Test("Of one partition or environment alone credentials and sessions are listed, and the quarantine is emptied")
    func ofOne() async throws {
        try await withQuarantine { store, partitions in
            for verb in ["credentials", "session"] {
                for option in [["--env", "staging"], ["--partition", partitions[0]]] {
                    let arguments = [verb, "--store", store.path] + option
                    let lines = try await LarderProcess.run(arguments).output.split(separator: "\n")
                    #expect(lines.count == 1 && lines[0].hasPrefix("\(partitions[0]) staging user ada "), "\(lines)")
                }
            }
            let one = try await larder(store, "credentials", "empty-quarantine", "--env", "staging", "--write")
            #expect(one.output == "destroyed 1 credential in quarantine\n", "\(one.errors)")
            let left = try await larder(store, "credentials").output
            #expect(left.hasPrefix("\(partitions[1]) production user ada userPool in quarantine since "), "\(left)")
        }
    }

    @Test("Emptying the quarantine says in JSON how many credentials it destroyed")
    func destroyed() async throws {
        try await withQuarantine { store, partitions in
            let done = try await larder(store, "credentials", "empty-quarantine", "--write", "--json")
            #expect(done.output.hasSuffix(#""result":{"destroyed":2}}"# + "\n"), "\(done)")
        }
    }

    @Test("sign-out works on a partition that is not the current one")
    func notCurrent() async throws {
        try await withStore { store, partitions in
            for option in [["--env", "staging"], ["--partition", partitions[0]]] {
                // Its environment has no user pool, which is told after what partition is meant.
                let told = try await LarderProcess.run(["sign-out", "--json", "--store", store.path] + option)
                #expect(told.status == 1 && told.errors.contains(#""code":"larder.noUserPool""#), "\(told.errors)")
            }
        }
    }

    @Test("JSON has neither a time nor a reason for a partition in which nobody was ever signed in")
    func neverSignedIn() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            _ = try await Store.makeStaging(at: place, schema: "type Query { n: Int }")
            let told = try await larder(place, "session", "--json").output
            #expect(told.contains(#""user":null,"state":"signedOut","since":null,"reason":null}"#), "\(told)")
        }
    }

    @Test("With LARDER_ENV, credentials, session and empty-quarantine cover only the environment that it names")
    func ofVariable() async throws {
        try await withQuarantine { store, partitions in
            func larder(_ arguments: String...) async throws -> Outcome {
                try await LarderProcess.run(
                    arguments + ["--store", store.path], environment: ["LARDER_ENV": "staging"])
            }
            for verb in ["credentials", "session"] {
                let lines = try await larder(verb).output.split(separator: "\n")
                #expect(lines.count == 1 && lines[0].hasPrefix("\(partitions[0]) staging user ada "), "\(lines)")
            }
            let emptied = try await larder("credentials", "empty-quarantine", "--write")
            #expect(emptied.output == "destroyed 1 credential in quarantine\n", "\(emptied)")
        }
    }

    @Test("sign-out signs the user of the named partition out, and no other")
    func signsOutElsewhere() async throws {
        let pool = BackendEnvironment.UserPool(id: "us-east-1_AbC123xyz", clientID: "client", region: "us-east-1")
        try await withStore(userPool: pool) { store, _ in
            // Nobody is there to be told.
            let left = try await larder(
                store, "sign-out", "--env", "staging", "--endpoint", "http://127.0.0.1:1/", "--json")
            #expect(left.status == 0, "\(left.errors)")
            let sessions = try await larder(store, "session").output.split(separator: "\n")
            try #require(sessions.count == 2, "\(sessions)")
            #expect(sessions[0].contains(" staging user ada signedOut "), "\(sessions)")
            #expect(sessions[1].contains(" production user ada signedIn "), "\(sessions)")
        }
    }
}
