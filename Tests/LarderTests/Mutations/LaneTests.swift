import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Lanes", .timeLimit(.minutes(10)))
struct LaneTests {
    private static let schema = """
        type Recipe { id: ID! stars: Int }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { add(stars: Int!): Recipe! rate(recipe: ID!, stars: Int!): Recipe! }
        """

    /// Keeps requests about the first recipe waiting until it is let go.
    private struct Gate {
        let isHeld = Flag()
        let letGo = Flag()

        var server: ScriptedServer {
            ScriptedServer(ScriptedServer.key, search: nil) { server, _, request in
                guard let stars = request.values["stars"] as? Int else { throw TransportError.away }
                let recipe = request.values["recipe"] as? String
                let id = recipe ?? "new"
                server.note("\(id) \(stars)")
                if id == "first" {
                    isHeld.set()
                    await letGo.wait()
                }
                let field = recipe == nil ? "add" : "rate"
                return GraphQLAnswer(
                    #"{"data":{"\#(field)":{"__typename":"Recipe","id":"\#(id)","stars":\#(stars)}}}"#)
            }
        }
    }

    private func rate(_ recipe: String, _ stars: Int64) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
            variables: ["recipe": .string(recipe), "stars": .int(stars)])
    }

    @Test("Replay does not reorder writes to one object, and objects do not wait for each other")
    func entities() async throws {
        let gate = Gate()
        let server = gate.server
        try await withStoreFixture(server, schema: Self.schema) { (app) throws in
            for stars in 1...3 as ClosedRange<Int64> {
                for recipe in ["first", "other"] {
                    try await app.enqueue(
                        rate(recipe, stars), options: MutationOptions(lane: .entity("Recipe:\(recipe)")))
                }
            }
            let last = try await app.enqueue(rate("other", 4), options: MutationOptions(lane: .entity("Recipe:other")))
            let draining = Task { try await MutationRunner(app).drain() }
            await gate.isHeld.wait()
            #expect(try await last.outcome(within: .seconds(300)).isApplied)
            #expect(server.effects.filter { $0.hasPrefix("other") } == ["other 1", "other 2", "other 3", "other 4"])
            #expect(server.effects.filter { $0.hasPrefix("first") } == ["first 1"])
            gate.letGo.set()
            try await draining.value
            #expect(server.effects.filter { $0.hasPrefix("first") } == ["first 1", "first 2", "first 3"])
        }
    }

    @Test("The lane of an object that is yet to be created is the real object's once it is")
    func temporary() async throws {
        let gate = Gate()
        let server = gate.server
        try await withStoreFixture(server, schema: Self.schema) { (app) throws in
            let temporary = TemporaryObjectID()
            let adding = GraphQLOperation(
                "mutation Add($stars: Int!) { add(stars: $stars) { id stars } }", variables: ["stars": 1])
            let added = try await app.enqueue(
                adding,
                options: MutationOptions(
                    lane: .entity("Recipe:\(temporary.text)"),
                    optimisticResponse: ["add": ["__typename": "Recipe", "id": .string(temporary.text), "stars": 1]],
                    temporaryIDs: [temporary]))
            try await app.enqueue(
                rate(temporary.text, 2), options: MutationOptions(lane: .entity("Recipe:\(temporary.text)")))
            try await app.enqueue(rate("first", 0), options: MutationOptions(lane: .entity("Recipe:first")))
            let draining = Task { try await MutationRunner(app).drain() }
            await gate.isHeld.wait()
            // Until the answer is known, the real object's lane is another one.
            _ = try await added.outcome(within: .seconds(300))
            let third = try await app.enqueue(rate("new", 3), options: MutationOptions(lane: .entity("Recipe:new")))
            #expect(try await third.outcome(within: .seconds(300)).isApplied)
            #expect(server.effects.filter { $0.hasPrefix("new") } == ["new 1", "new 2", "new 3"])
            gate.letGo.set()
            try await draining.value
        }
    }

    @Test("A lane that has sent a hundred mutations gives its place to one that waits for it")
    func longLane() async throws {
        let gate = Gate()
        gate.letGo.set()
        let server = gate.server
        try await withStoreFixture(server, schema: Self.schema) { (app) throws in
            try await app.enqueue(
                (0..<150).map { (rate("long", $0), MutationOptions(lane: "a")) }
                    + [(rate("short", 0), MutationOptions(lane: "b"))])
            var options = MutationRunner.Options()
            options.maximumLanes = 1
            try await MutationRunner(app, options: options).drain()
            #expect(server.effects.count == 151)
            #expect(server.effects.firstIndex(of: "short 0") == 100)
        }
    }

    @Test("More lanes than may be busy come to their turns, also where one never ends")
    func turns() async throws {
        let gate = Gate()
        let server = gate.server
        try await withStoreFixture(server, schema: Self.schema) { (app) throws in
            for number in 0..<20 {
                for stars in 1...3 as ClosedRange<Int64> {
                    try await app.enqueue(
                        rate("r\(number)", stars), options: MutationOptions(lane: .entity("r\(number)")))
                }
            }
            try await app.enqueue(rate("first", 0), options: MutationOptions(lane: "a"))
            var options = MutationRunner.Options()
            options.maximumLanes = 2
            let runner = MutationRunner(app, options: options)
            let draining = Task { try await runner.drain() }
            await gate.isHeld.wait()
            try await eventually { server.effects.count >= 61 }
            for number in 0..<20 {
                #expect(server.effects.filter { $0.hasPrefix("r\(number) ") } == (1...3).map { "r\(number) \($0)" })
            }
            gate.letGo.set()
            try await draining.value
        }
    }
}
