import Foundation
import LarderFiles
import LarderImport
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Taking over queued mutations", .timeLimit(.minutes(10)))
struct MutationImportTests {
    private let rate = "mutation Rate($id: ID!, $stars: Int!) { rate(id: $id, stars: $stars) { __typename id rating } }"

    private func body(_ stars: String, _ document: String? = nil) throws -> String {
        let query = String(decoding: try JSONEncoder().encode(document ?? rate), as: UTF8.self)
        return #"{"query":\#(query),"variables":{"id":"1","stars":\#(stars)}}"#
    }

    private func queue(_ folder: URL, _ fill: (ForeignFixture) throws -> Void) throws -> String {
        let fixture = try ForeignFixture(folder.appending(path: "offlineMutations.db").path, .mutations)
        try fill(fixture)
        fixture.close()
        return folder.path
    }

    @Test("Mutations of another library are queued in their order, whatever the clock said, and only once")
    func order() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { fixture in
                try fixture.mutation("C", body("1"), time: "2030-01-01T00:00:00.000")
                try fixture.mutation("A", body("2"), time: "2019-01-01T00:00:00.000")
                try fixture.mutation("B", body("3"), time: "2020-01-01T00:00:00.000")
            }
            let source = try source(path, .appSync) { $0.takesMutations = true }
            #expect(try await source.run(into: app, isDryRun: true).mutations == .init(taken: 3))
            #expect(try app.mutations().isEmpty)
            #expect(try await source.run(into: app).mutations == .init(taken: 3))
            let queued = try app.mutations()
            #expect(queued.map(\.state) == [.pending, .pending, .pending])
            let contents = try app.core.operationsStore.database().mutations.list(
                MutationFilter(partition: app.core.name)
            )
            .map(\.content)
            #expect(
                contents.map { String(decoding: $0.variables, as: UTF8.self) } == [
                    #"{"id":"1","stars":1}"#, #"{"id":"1","stars":2}"#, #"{"id":"1","stars":3}"#,
                ])
            #expect(contents.first?.document == rate)
            for isDryRun in [true, false] {
                #expect(try await source.run(into: app, isDryRun: isDryRun).mutations == .init(present: 3))
            }
            #expect(try app.mutations().map(\.id) == queued.map(\.id))
        }
    }

    @Test("A mutation's id is made of its id there alone, so that any later process knows it again")
    func sameID() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { try $0.mutation("A", body("1")) }
            _ = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            // Of the SHA-256 of "larder import appsync mutation 1", the end of a line, and "A".
            #expect(try app.mutations().map(\.id.description) == ["1b964256-426e-8ea9-89fe-5b58fb7b587e"])
        }
    }

    private func expectTaken(_ body: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { try $0.mutation("A", body) }
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            #expect(
                report.mutations == .init(taken: 1) && report.omissions.isEmpty, sourceLocation: sourceLocation)
            #expect(try app.mutations().count == 1, sourceLocation: sourceLocation)
        }
    }

    @Test("Of a document with several operations the one that is named is taken")
    func named() async throws {
        let document = "\(rate) mutation Other { rate(id: 2, stars: 1) { id } }"
        try await expectTaken(body("1", document).dropLast() + #","operationName":"Rate"}"#)
    }

    @Test("A mutation that says nothing of variables is queued without any")
    func withoutVariables() async throws {
        try await expectTaken(#"{"query":"mutation { rate(id: 2, stars: 1) { __typename id } }"}"#)
    }

    @Test("A query among the mutations is told as refused also where nothing is queued")
    func query() async throws {
        try await withRecipeBox { _, folder in
            let path = try queue(folder) { try $0.mutation("query", #"{"query":"{ count }","variables":null}"#) }
            let report = try await source(path, .appSync) { $0.takesMutations = true }.inspect()
            #expect(report.omitted(.mutation, .refused) == 1 && report.mutations == .init())
        }
    }

    @Test("Without being asked, none is taken")
    func notAsked() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { try $0.mutation("A", body("1")) }
            let report = try await source(path, .appSync).run(into: app)
            #expect(report.mutations == .init() && report.omitted(.mutation, .notAsked) == 1)
            #expect(report.omissions.first?.examples == ["A (Rate)"])
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("A mutation that may have been sent, has a file, is done, or does not fit the schema is told and not taken")
    func omitted() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { fixture in
                try fixture.mutation("sent", body("1"), state: "inProgress")
                try fixture.mutation("done", body("1"), state: "isDone")
                try fixture.mutation("odd", body("1"), state: "lost")
                try fixture.mutation("file", body("1"), file: "file:///photo.jpg")
                try fixture.mutation("type", body("\"five\""))
                try fixture.mutation("field", body("1", "mutation { burn { id } }"))
                try fixture.mutation("query", #"{"query":"{ count }","variables":null}"#)
                try fixture.mutation("syntax", body("1", "mutation {"))
                try fixture.mutation("json", "{")
                try fixture.mutation("shape", #"{"query":7}"#)
                try fixture.mutation("good", body("5"))
            }
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            let found = Dictionary(uniqueKeysWithValues: report.omissions.map { ($0.reason, $0.count) })
            #expect(found == [.outcomeUnknown: 1, .done: 1, .hasFile: 1, .refused: 4, .unreadable: 3])
            let unreadable = report.omissions.first { $0.reason == .unreadable }
            #expect(unreadable?.examples.first == "odd (Rate), in the state lost")
            #expect(report.mutations == .init(taken: 1))
            #expect(try app.mutations().count == 1)
        }
    }

    @Test(
        "A mutation is left out as one with a file where any column about files has a value",
        arguments: ["s3Bucket", "s3Key", "s3Region", "s3LocalUri", "s3MimeType"])
    func withFile(column: String) async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { fixture in
                try fixture.mutation("A", body("1"))
                try fixture.run("UPDATE mutation_records SET \(column) = 'x'")
            }
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            #expect(report.omitted(.mutation, .hasFile) == 1 && report.mutations == .init())
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("An import into a store that takes no mutation any more fails with an error of the store")
    func unwritable() async throws {
        try await withTemporaryFolder { folder in
            let path = try queue(folder) { try $0.mutation("A", body("1")) }
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: recipeSchema))
            let app = try store.partition()
            try store.close()
            let source = try source(path, .appSync) { $0.takesMutations = true }
            let error = await #expect(throws: ImportError.self) { try await source.run(into: app) }
            #expect(error?.code == .store)
        }
    }

    @Test("Taking over mutations from a file that is changed meanwhile ends in an error")
    func changedMeanwhile() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { try $0.mutation("A", body("1")) }
            let schema = try Schema(parsing: recipeSchema)
            let source = try ImportSource(.appSync, path: path, schema: schema, .changing { $0.hasSuffix(".db") })
            let error = await #expect(throws: ImportError.self) { try await source.run(into: app) }
            #expect(error?.code == .busy)
        }
    }

    @Test("A mutation that was taken, set aside and discarded is not taken again")
    func settled() async throws {
        try await withRecipeBox { app, folder in
            let path = try queue(folder) { try $0.mutation("A", body("1")) }
            let source = try source(path, .appSync) { $0.takesMutations = true }
            _ = try await source.run(into: app)
            let id = try #require(try app.mutations().first?.id)
            let failure = MutationFailure(.rejected, message: "no", time: Date())
            try await app.core.operationsStore.database().mutations.apply(
                [.setAside(id.uuid, expecting: .pending, failure)], now: Date())
            try await app.discardMutation(id, dependents: .release)
            #expect(try await source.run(into: app).mutations == .init(present: 1))
        }
    }
}
