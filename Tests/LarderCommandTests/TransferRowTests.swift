import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("All transfers at once, and runs in which one fails", .timeLimit(.minutes(10)))
struct TransferRowTests {
    @Test(
        "With --all a verb means the transfers that are in a state for it, and no others",
        arguments: [
            ("pause", ["pending", "running"]), ("resume", ["paused"]), ("cancel", ["pending", "running", "paused"]),
            ("retry", ["failed"]),
        ])
    func states(verb: String, states: [String]) async throws {
        try await TransferFixture.run { fixture in
            var ids: [String: UUID] = [:]
            for state in ["pending", "running", "paused", "failed", "done"] {
                ids[state] = try await fixture.download()
            }
            func id(_ state: String) throws -> UUID { try #require(ids[state]) }
            try await fixture.begin(id("running"))
            try await fixture.withTable { try await $0.pause(id("paused")) }
            try await fixture.fail(fixture.begin(id("failed")))
            let attempt = try await fixture.begin(id("done"))
            try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            let outcome = try await fixture.larder("transfers", verb, "--all", "--write", "--json")
            #expect(outcome.status == 0 && outcome.output.contains(#""refused":[]"#), "\(outcome.output)")
            let changed = outcome.output.matches(of: /\{"id":"([^"]+)"/).map { String($0.1) }
            #expect(try Set(changed) == Set(states.map { try id($0).text }), "\(outcome.output)")
            let again = try await fixture.larder("transfers", "retry", "--all", "--state", "failed", "--write")
            #expect(again.status == 0 && again.errors.contains("there were no transfers") == (verb == "retry"))
        }
    }

    @Test("A transfer that cannot be changed is told, the others are changed, and the status is 1")
    func refused() async throws {
        try await TransferFixture.run { fixture in
            let (lost, found) = (try await fixture.upload(), try await fixture.download())
            for id in [lost, found] { try await fixture.fail(fixture.begin(id)) }
            try FileManager.default.removeItem(at: fixture.source)
            let outcome = try await fixture.larder("transfers", "retry", "--all", "--write")
            #expect(outcome.status == 1 && outcome.output == "retried \(found.text)\n", "\(outcome.output)")
            #expect(outcome.errors.contains("\(lost.text): "), "\(outcome.errors)")
            #expect(try await fixture.state(of: lost) == .failed)
            #expect(try await fixture.state(of: found) == .pending)
        }
    }

    @Test("JSON says in words, too, why a transfer cannot be changed")
    func refusedInWords() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(fixture.upload()))
            try FileManager.default.removeItem(at: fixture.source)
            let told = try await fixture.larder("transfers", "retry", "--all", "--write", "--json").output
            #expect(told.contains(/"code":"transfer.sourceMissing","message":"[^"]+"/), "\(told)")
        }
    }

    @Test("JSON names each transfer that cannot be changed, with the reason's code, and each that was changed")
    func refusedInJSON() async throws {
        try await TransferFixture.run { fixture in
            let (lost, found) = (try await fixture.upload(), try await fixture.download())
            for id in [lost, found] { try await fixture.fail(fixture.begin(id)) }
            try FileManager.default.removeItem(at: fixture.source)
            let told = try await fixture.larder("transfers", "retry", "--all", "--write", "--json").output
            #expect(told.contains(#""changed":[{"id":"\#(found.text)","setAside":[]}]"#), "\(told)")
            let refused = #""refused":[{"id":"\#(lost.text)","code":"transfer.sourceMissing","message":""#
            #expect(told.contains(refused), "\(told)")
        }
    }

    @Test("A transfer that has not failed is told to be in another state, whatever became of its file")
    func notFailed() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try FileManager.default.removeItem(at: fixture.source)
            let outcome = try await fixture.larder("transfers", "retry", id.text, "--write", "--json")
            #expect(outcome.status == 4 && outcome.errors.contains("operations.wrongState"), "\(outcome.errors)")
        }
    }

    @Test("run works with the storage of the name that it is given, and a transfer that fails is told by its status")
    func namedStorage() async throws {
        try await TransferFixture.run { fixture in
            let location = ObjectLocation(bucket: "media", key: "k", region: "eu-west-1", storage: "archive")
            let (named, unnamed) = (try await fixture.upload(to: location), try await fixture.upload())
            try FileManager.default.removeItem(at: fixture.source)
            func run(_ more: String...) async throws -> Outcome {
                try await LarderProcess.run(
                    [
                        "run", "--until-idle", "--endpoint", "http://127.0.0.1:1/", "--object-region", "eu-west-1",
                        "--object-endpoint", "http://127.0.0.1:9", "--store", fixture.store,
                    ] + more, environment: ["AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"])
            }
            let first = try await run("--object-storage", "archive", "--json")
            #expect(first.status == 1, "\(first.errors)")
            #expect(first.output.contains(#""isIdle":true"#) && first.output.contains(#""failedTransfers":1"#))
            #expect(first.output.contains(#""remainingTransfers":["\#(unnamed.text)"]"#), "\(first.output)")
            #expect(try await fixture.state(of: named) == .failed)
            #expect(try await fixture.state(of: unnamed) == .pending)
            let second = try await run()
            #expect(
                second.status == 1 && second.output.hasPrefix("failed upload \(unnamed.text): "), "\(second.output)")
            #expect(second.errors.contains("0 mutations applied, 0 set aside; 0 transfers done, 1 failed"))
        }
    }

    @Test(
        "Where the storage does not take the keys, a run until idle ends with that, and what waits stays queued",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))
    func refusedKeys() async throws {
        try await StorageServer.run { storage in
            try await TransferFixture.run { fixture in
                let place = ObjectLocation(bucket: storage.bucket, key: "a", region: StorageServer.region)
                let id = try await fixture.upload(to: place)
                let outcome = try await fixture.larder(
                    "run", "--until-idle", "--give-up-after", "30", "--endpoint", "http://127.0.0.1:1/",
                    "--object-region", StorageServer.region, "--object-endpoint", storage.url.absoluteString,
                    "--path-style", "--json",
                    environment: ["AWS_ACCESS_KEY_ID": storage.accessKeyID, "AWS_SECRET_ACCESS_KEY": "another"])
                #expect(outcome.status == 1)
                let told = "The storage does not take the keys, and what waits was not moved"
                #expect(outcome.errors.contains(told), "\(outcome.errors)")
                #expect(outcome.errors.contains("object.invalidCredentials"), "\(outcome.errors)")
                #expect(try await fixture.state(of: id) == .pending)
            }
        }
    }

    @Test("A run that cannot reach the storage says which transfer waits, and why, and names it as what remains")
    func unreachableStorage() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let outcome = try await fixture.larder(
                "run", "--until-idle", "--give-up-after", "3", "--endpoint", "http://127.0.0.1:1/", "--object-region",
                "eu-west-1", "--object-endpoint", "http://127.0.0.1:9",
                environment: ["AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"])
            #expect(outcome.status == 1, "\(outcome)")
            let told = "waiting: transfer \(id.text) is tried again after pauses: "
            #expect(outcome.errors.contains(told), "\(outcome.errors)")
            #expect(outcome.errors.contains("and 1 transfer remains: transfer \(id.text)"), "\(outcome.errors)")
        }
    }

    @Test("JSON says of a transfer whose it is, wherever it is shown", arguments: ["list", "show", "watch"])
    func owner(verb: String) async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let name = try await Store.makeStaging(at: place, schema: TransferFixture.schema, user: .user("ada"))
            let draft = TransferDraft(
                partition: name, kind: .download, bucket: "b", key: "k", path: "/f", created: Date())
            try await OperationsDatabase.using(place) { database in
                try await database.transfers.enqueue([draft])
            }
            var arguments = ["transfers", verb, "--json", "--store", place.path]
            if verb != "list" { arguments.append(draft.id.text) }
            if verb == "watch" { arguments += ["--count", "1"] }
            let told = try await LarderProcess.run(arguments)
            #expect(told.output.contains(#""environment":"staging","user":"ada""#), "\(told)")
        }
    }

    @Test("JSON says when a transfer was queued, and has no region where the program has named none")
    func queuedTime() async throws {
        try await TransferFixture.run { fixture in
            let draft = TransferDraft(
                partition: "main", kind: .download, bucket: "b", key: "k", path: "/f",
                created: Date(timeIntervalSince1970: 1_800_000_000))
            _ = try await fixture.download()
            try await fixture.withTable { try await $0.enqueue([draft]) }
            let told = try await fixture.larder("transfers", "show", draft.id.text, "--json").output
            #expect(told.contains(#","key":"k","region":null,"file":"/f","#), "\(told)")
            #expect(told.contains(#","created":"2027-01-15T08:00:00Z""#), "\(told)")
        }
    }

    /// Runs `body` with the place of a store, and a transfer of each of its two environments.
    private func withTwoEnvironments(
        _ body: (_ store: URL, _ staging: UUID, _ production: UUID) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            var transfers: [UUID] = []
            for name in ["staging", "production"] {
                let store = try Store.open(at: place, schemaText: [TransferFixture.schema])
                _ = try await store.switch(to: .example(name))
                let draft = TransferDraft(
                    partition: try #require(try store.current()).name, kind: .download, bucket: "b", key: "k",
                    path: "/\(name)", created: Date())
                try store.close()
                try await OperationsDatabase.using(place) { try await $0.transfers.enqueue([draft]) }
                transfers.append(draft.id)
            }
            try await body(place, transfers[0], transfers[1])
        }
    }

    @Test("transfers pause --all pauses only the transfers of the environment that LARDER_ENV names")
    func allOfVariable() async throws {
        try await withTwoEnvironments { (place, staging, production) throws in
            let paused = try await LarderProcess.run(
                ["transfers", "pause", "--all", "--write", "--store", place.path],
                environment: ["LARDER_ENV": "staging"])
            #expect(paused.output == "paused \(staging.text)\n", "\(paused)")
            let states = try await OperationsDatabase.using(place) { database in
                try [staging, production].map { try database.transfers.find($0)?.state }
            }
            #expect(states == [.paused, .pending])
        }
    }

    @Test("transfers lists only those of the environment that LARDER_ENV names")
    func listedOfVariable() async throws {
        try await withTwoEnvironments { (place, staging, _) throws in
            let listed = try await LarderProcess.run(
                ["transfers", "--store", place.path], environment: ["LARDER_ENV": "staging"])
            let lines = listed.output.split(separator: "\n")
            #expect(lines.count == 1 && lines[0].hasPrefix("pending \(staging.text) "), "\(listed)")
        }
    }

    @Test("transfers show finds a transfer by its id, though LARDER_ENV names another environment")
    func shownBesideVariable() async throws {
        try await withTwoEnvironments { (place, _, production) throws in
            let shown = try await LarderProcess.run(
                ["transfers", "show", production.text, "--store", place.path], environment: ["LARDER_ENV": "staging"])
            #expect(shown.status == 0 && shown.output.hasPrefix("pending \(production.text) "), "\(shown)")
        }
    }
}
