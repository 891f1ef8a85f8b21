import Foundation
import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

private let schema = """
    type Review { id: ID! body: String! movie: Movie }
    type Movie { id: ID! reviews: [Review!] latest: Review }
    type Query { review(id: ID!): Review }
    type Mutation { add(body: String!): Review addAll(bodies: [String!]!): [Review!] remove(review: ID!): Review
      removeAll(reviews: [ID!]!): Review removeOne(which: Which!): Review
    }
    input Which { review: ID! }
    """

/// A server that tells repeats, answers `add` with a given text, and notes the variables of `remove`.
private func withReviews(
    _ answer: String, _ body: (Partition, ScriptedServer) async throws -> Void
) async throws {
    let server = ScriptedServer(ScriptedServer.key, search: nil) { server, _, request in
        guard request.document.contains("remove") else { return GraphQLAnswer(answer) }
        server.note(String(decoding: request.variables, as: UTF8.self))
        return GraphQLAnswer(#"{"data":{"remove":null}}"#)
    }
    try await withStoreFixture(server, schema: schema) { try await body($0, server) }
}

/// Queues a mutation that creates a review.
///
/// - Returns: The review's temporary id.
@discardableResult
private func addReview(
    to app: Partition, as id: TemporaryObjectID = TemporaryObjectID()
) async throws -> TemporaryObjectID {
    try await app.enqueue(
        GraphQLOperation("mutation { add(body: \"Fine\") { id } }"),
        options: MutationOptions(optimisticResponse: ["add": ["id": id.value]], temporaryIDs: [id]))
    return id
}

/// Queues a mutation that creates a review, which is to be its movie's latest.
private func addLatest(to app: Partition) async throws -> (id: TemporaryObjectID, receipt: MutationReceipt) {
    let id = TemporaryObjectID()
    let receipt = try await app.enqueue(
        GraphQLOperation("mutation { add(body: \"Fine\") { id movie { id latest { id } } } }"),
        options: MutationOptions(
            optimisticResponse: ["add": ["id": id.value, "movie": ["id": "m", "latest": ["id": id.value]]]],
            temporaryIDs: [id]))
    return (id, receipt)
}

private func remove(_ id: Value) -> GraphQLOperation {
    GraphQLOperation("mutation R($id: ID!) { remove(review: $id) { id } }", variables: ["id": id])
}

@Suite("Temporary ids and the objects that a mutation creates", .timeLimit(.minutes(10)))
struct TemporaryIDTests {
    @Test("The real id is the created object's, whatever stands in the server's list where the program had it")
    func otherOrder() async throws {
        // Under many names: which of them is compared first depends on the order of a dictionary.
        let lists = (0..<16).map { "l\($0): movie { id reviews { id } }" }.joined(separator: " ")
        let add = GraphQLOperation("mutation { add(body: \"Fine\") { id \(lists) } }")
        let answered = (0..<16).map {
            #""l\#($0)":{"__typename":"Movie","id":"m","reviews":[{"__typename":"Review","id":"theirs"},"#
                + #"{"__typename":"Review","id":"ours"}]}"#
        }.joined(separator: ",")
        let answer = #"{"data":{"add":{"__typename":"Review","id":"ours",\#(answered)}}}"#
        try await withReviews(answer) { (app, server) throws in
            let id = TemporaryObjectID()
            var review: [String: Value] = ["__typename": "Review", "id": id.value]
            for number in 0..<16 {
                review["l\(number)"] = [
                    "__typename": "Movie", "id": "m", "reviews": [["id": id.value], ["id": "theirs"]],
                ]
            }
            try await app.enqueue(
                add, options: MutationOptions(optimisticResponse: ["add": .object(review)], temporaryIDs: [id]))
            let removal = try await app.enqueue(remove(id.value))
            try await quickRunner(app).drain()
            #expect(try removal.status()?.state == .applied)
            #expect(server.effects == [#"{"id":"ours"}"#])
        }
    }

    @Test("Where an answer has two ids for one temporary id, neither is taken and nothing of a stranger is changed")
    func contradiction() async throws {
        let answer = """
            {"data":{"add":{"__typename":"Review","id":"ours","movie":{"__typename":"Movie","id":"m",
            "latest":{"__typename":"Review","id":"theirs"}}}}}
            """
        try await withReviews(answer) { (app, server) throws in
            let (id, added) = try await addLatest(to: app)
            let removal = try await app.enqueue(remove(id.value))
            try await quickRunner(app).drain()
            #expect(try added.status()?.state == .applied)
            #expect(try removal.status()?.failure?.kind == .temporaryIDLost)
            #expect(server.effects == [])
        }
    }

    @Test(
        "A real id is read where the answer has it, though the answer has no object in another place of it",
        arguments: ["null", #"{"__typename":"Movie","id":"m","latest":null}"#])
    func absent(_ movie: String) async throws {
        let answer = #"{"data":{"add":{"__typename":"Review","id":"ours","movie":\#(movie)}}}"#
        try await withReviews(answer) { (app, server) throws in
            let (id, _) = try await addLatest(to: app)
            let removal = try await app.enqueue(remove(id.value))
            try await quickRunner(app).drain()
            #expect(try removal.status()?.state == .applied)
            #expect(server.effects == [#"{"id":"ours"}"#])
        }
    }

    @Test("Each object that a mutation creates under its own alias gets its real id")
    func several() async throws {
        let answer = """
            {"data":{"a":{"__typename":"Review","id":"1"},"b":{"__typename":"Review","id":"2"}}}
            """
        try await withReviews(answer) { (app, server) throws in
            let (first, second) = (TemporaryObjectID(), TemporaryObjectID())
            try await app.enqueue(
                GraphQLOperation("mutation { a: add(body: \"Fine\") { id } b: add(body: \"Dull\") { id } }"),
                options: MutationOptions(
                    optimisticResponse: ["a": ["id": first.value], "b": ["id": second.value]],
                    temporaryIDs: [first, second]))
            for id in [first, second] { try await app.enqueue(remove(id.value)) }
            try await quickRunner(app).drain()
            #expect(server.effects == [#"{"id":"1"}"#, #"{"id":"2"}"#])
        }
    }

    @Test("A temporary id that stands in a list alone gets no real id")
    func listAlone() async throws {
        let answer = #"{"data":{"addAll":[{"__typename":"Review","id":"1"},{"__typename":"Review","id":"2"}]}}"#
        try await withReviews(answer) { (app, server) throws in
            let (first, second) = (TemporaryObjectID(), TemporaryObjectID())
            try await app.enqueue(
                GraphQLOperation("mutation { addAll(bodies: [\"a\", \"b\"]) { id } }"),
                options: MutationOptions(
                    optimisticResponse: ["addAll": [["id": first.value], ["id": second.value]]],
                    temporaryIDs: [first, second]))
            let removal = try await app.enqueue(remove(second.value))
            try await quickRunner(app).drain()
            #expect(try removal.status()?.failure?.kind == .temporaryIDLost)
            #expect(server.effects == [])
        }
    }

    @Test("A server that answers with the temporary id itself has said no real one")
    func repeated() async throws {
        let id = TemporaryObjectID()
        try await withReviews(#"{"data":{"add":{"__typename":"Review","id":"\#(id.text)"}}}"#) { (app, server) throws in
            try await addReview(to: app, as: id)
            let removal = try await app.enqueue(remove(id.value))
            try await quickRunner(app).drain()
            #expect(try removal.status()?.failure?.kind == .temporaryIDLost)
            #expect(server.effects == [])
        }
    }

    @Test(
        "An id that the server sends as a number is taken with all its digits",
        arguments: [
            "7", "9223372036854775807", "9223372036854775808", "123456789012345678901234567890", "10000000000000000000",
            "100000000000000000000000",
        ])
    func numbers(_ real: String) async throws {
        try await withReviews(#"{"data":{"add":{"__typename":"Review","id":\#(real)}}}"#) { (app, server) throws in
            let id = try await addReview(to: app)
            try await app.enqueue(remove(id.value))
            try await quickRunner(app).drain()
            #expect(server.effects == [#"{"id":"\#(real)"}"#])
        }
    }

    @Test(
        "A temporary id in the text of a document is refused before anything is queued",
        arguments: [
            "mutation { remove(review: \"*\") { id } }", "mutation { a: remove(review: \"\\u006c+\") { id } }",
            "mutation R($id: ID! = \"*\") { remove(review: $id) { id } }",
            "mutation { addAll(bodies: [\"x\", \"Review:*\"]) { id } }",
        ])
    func literals(_ document: String) async throws {
        try await withReviews("") { (app, _) throws in
            let id = try await addReview(to: app)
            let text = document.replacing("*", with: id.text).replacing("+", with: id.text.dropFirst())
            let error = await #expect(throws: LarderError.self) { try await app.enqueue(GraphQLOperation(text)) }
            #expect(error?.code == .operation)
            #expect(try app.mutations().count == 1)
        }
    }

    // MARK: At once

    private static let added = #"{"data":{"add":{"__typename":"Review","id":"7"}}}"#

    @Test("A mutation sent at once does not tell the server a temporary id of which no real one is known")
    func unknownAtOnce() async throws {
        try await withReviews(Self.added) { (app, server) throws in
            let id = try await addReview(to: app)
            for operation in [remove(id.value), remove(TemporaryObjectID().value)] {
                let error = await #expect(throws: LarderError.self) {
                    try await app.send(operation, within: .seconds(60))
                }
                #expect(error?.code.rawValue == "operations.unknownTemporaryID")
            }
            #expect(server.effects == [])
        }
    }

    @Test("A mutation sent at once tells the server the real id, once that is known")
    func knownAtOnce() async throws {
        try await withReviews(Self.added) { (app, server) throws in
            let id = try await addReview(to: app)
            try await quickRunner(app).drain()
            _ = try await app.send(remove(id.value), within: .seconds(60))
            #expect(server.effects == [#"{"id":"7"}"#])
        }
    }

    @Test("A mutation sent at once tells the server the real ids in a list as well")
    func listAtOnce() async throws {
        try await withReviews(Self.added) { (app, server) throws in
            let id = try await addReview(to: app)
            try await quickRunner(app).drain()
            let removal = GraphQLOperation(
                "mutation R($ids: [ID!]!) { remove: removeAll(reviews: $ids) { id } }",
                variables: ["ids": ["6", id.value]])
            _ = try await app.send(removal, within: .seconds(60))
            #expect(server.effects == [#"{"ids":["6","7"]}"#])
        }
    }

    @Test("A mutation sent at once tells the server the real id in an input object, and never the temporary one")
    func inputObjectAtOnce() async throws {
        try await withReviews(Self.added) { (app, server) throws in
            let id = try await addReview(to: app)
            let removal = GraphQLOperation(
                "mutation R($which: Which!) { remove: removeOne(which: $which) { id } }",
                variables: ["which": ["review": id.value]])
            await expectCode(.init(rawValue: "operations.unknownTemporaryID")) {
                _ = try await app.send(removal, within: .seconds(60))
            }
            #expect(server.effects == [])
            try await quickRunner(app).drain()
            _ = try await app.send(removal, within: .seconds(60))
            #expect(server.effects == [#"{"which":{"review":"7"}}"#])
        }
    }

    @Test("A query does not tell the server a temporary id, and tells it the real one once that is known")
    func queryAtOnce() async throws {
        let asked = Mutex<[String]>([])
        let transport = ScriptedServer { request in
            guard request.kind == .query else { return Self.added }
            asked.withLock { $0.append(String(decoding: request.variables, as: UTF8.self)) }
            return #"{"data":{"review":{"__typename":"Review","id":"7","body":"Fine"}}}"#
        }
        try await withStoreFixture(transport, schema: schema) { app in
            let id = try await addReview(to: app)
            let query = GraphQLOperation("query Q($id: ID!) { review(id: $id) { body } }", variables: ["id": id.value])
            let error = await #expect(throws: LarderError.self) { try await app.fetch(query, policy: .networkOnly) }
            #expect(error?.code.rawValue == "operations.unknownTemporaryID")
            try await quickRunner(app).drain()
            #expect(try await app.fetch(query, policy: .networkOnly)["review"]?["body"]?.string == "Fine")
            #expect(asked.withLock { $0 } == [#"{"id":"7"}"#])
        }
    }

    @Test("Where the server cannot be told an id yet, the cache answers in its place, as for a server that is away")
    func networkFirst() async throws {
        let server = ScriptedServer { _ in Self.added }
        let policy = #"extend type Query @fieldPolicy(forField: "review", keyArgs: ["id"])"#
        try await withStoreFixture(server, schema: schema + policy) { app in
            let id = TemporaryObjectID()
            let review: Value = ["__typename": "Review", "id": id.value, "body": "Fine"]
            try await app.enqueue(
                GraphQLOperation("mutation { add(body: \"Fine\") { id body } }"),
                options: MutationOptions(optimisticResponse: ["add": review], temporaryIDs: [id]))
            let query = GraphQLOperation("query Q($id: ID!) { review(id: $id) { body } }", variables: ["id": id.value])
            #expect(try await app.fetch(query, policy: .networkFirst)["review"]?["body"]?.string == "Fine")
            #expect(server.requests.isEmpty)
        }
    }

    @Test("An immediate mutation and a query have no temporary id in the texts of their documents")
    func textAtOnce() async throws {
        try await withReviews(Self.added) { (app, server) throws in
            let id = TemporaryObjectID()
            let operation = GraphQLOperation("mutation { remove(review: \"\(id.text)\") { id } }")
            let error = await #expect(throws: LarderError.self) {
                try await app.send(operation, within: .seconds(60))
            }
            #expect(error?.code == .operation)
            #expect(server.effects == [])
            let query = GraphQLOperation("{ review(id: \"\(id.text)\") { body } }")
            let refusal = await #expect(throws: LarderError.self) { try await app.fetch(query, policy: .networkOnly) }
            #expect(refusal?.code == .operation)
        }
    }

    @Test("Of a query with a temporary id the cache's answer too is that of the real id, once that is known")
    func cacheAndNetwork() async throws {
        let server = ScriptedServer { request in
            guard request.kind == .query else { return Self.added }
            return #"{"data":{"review":{"__typename":"Review","id":"7","body":"Fine"}}}"#
        }
        try await withStoreFixture(server, schema: schema) { app in
            let id = try await addReview(to: app)
            try await quickRunner(app).drain()
            let query = GraphQLOperation("query Q($id: ID!) { review(id: $id) { body } }", variables: ["id": id.value])
            _ = try await app.fetch(query, policy: .networkOnly)
            var bodies: [String?] = []
            for try await answer in app.fetches(query, policy: .cacheAndNetwork) {
                bodies.append(answer["review"]?["body"]?.string)
            }
            #expect(bodies == ["Fine", "Fine"])
        }
    }

    @Test("A subscription tells the server the real id, once that is known")
    func subscribed() async throws {
        let line = ScriptedLine()
        let subscriptions = "type Subscription { changed(review: ID!): Review }"
        try await withStoreFixture(line, schema: schema + subscriptions) { app in
            let id = try await addReview(to: app)
            try await quickRunner(app.with(server: ScriptedServer { _ in Self.added })).drain()
            let subscription = try await app.subscribe(
                GraphQLOperation(
                    "subscription S($id: ID!) { changed(review: $id) { body } }", variables: ["id": id.value]))
            let connection = try #require(await line.next())
            await connection.line.take(.opened)
            for await case .start(_, let request) in connection.commands {
                #expect(request.variableValues == ["id": "7"])
                break
            }
            withExtendedLifetime(subscription) {}
        }
    }
}
