import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private let schema = """
    type Recipe { id: ID! title: String! stars: Int }
    type Query { recipe(id: ID!): Recipe recipes: [Recipe!] }
    type Mutation { add(title: String!): Recipe! rate(recipe: ID!, stars: Int!): Recipe!
      addAll(titles: [String!]!): [Recipe!]
    }
    """

private func add(_ title: String) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Add($title: String!) { add(title: $title) { id title } }", variables: ["title": .string(title)])
}

private func added(_ id: String, _ title: String) -> String {
    #"{"data":{"add":{"__typename":"Recipe","id":"\#(id)","title":"\#(title)"}}}"#
}

private func rateOdd(_ recipe: Value) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Rate($recipe: ID!) { rate(recipe: $recipe, stars: 5) { id stars } }", variables: ["recipe": recipe])
}

@Suite("Answers that are not what was asked for", .timeLimit(.minutes(10)))
struct OddAnswerTests {
    @Test("An answer with another mutation's fields is not stored, and asked for again under the same key")
    func otherFields() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, _ in
            number == 0
                ? #"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"# : added("1", "Soup")
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let receipt = try await app.enqueue(add("Soup"))
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(server.requests.count == 2)
            let fragment = GraphQLFragment("fragment F on Recipe { title }")
            #expect(try app.read("Recipe:1", fragment)["title"]?.string == "Soup")
            #expect(throws: LarderError.self) {
                try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { stars }"))
            }
        }
    }

    @Test("A bad mutation at the head does not block all others for ever, and is not deleted after a few attempts")
    func neverFits() async throws {
        let server = ScriptedServer(ScriptedServer.key) { request in
            request.document.contains("Add")
                ? #"{"data":{"nonsense":1}}"#
                : #"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"#
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let bad = try await app.enqueue(add("Soup"))
            let good = try await app.enqueue(rateOdd("1"))
            try await quickRunner(app) { $0.maximumFaults = 3 }.drain()
            #expect(try bad.status()?.state == .deadLetter)
            #expect(try bad.status()?.failure?.kind == .serverFault)
            #expect(try good.status()?.state == .applied)
            #expect(server.requests.count == 4)
        }
    }

    @Test("A mutation that is applied leaves the faults of one in another lane as they are counted")
    func faultsBesideOthers() async throws {
        let counts = Mutex((bad: 0, good: 0))
        let server = ScriptedServer(ScriptedServer.key) { request in
            let isBad = request.document.contains("Add")
            let number = counts.withLock { counts in
                if isBad { counts.bad += 1 } else { counts.good += 1 }
                return isBad ? counts.bad : counts.good
            }
            // While the server is asked for each fault, another mutation is answered, and the next one sent.
            for _ in 0..<5_000 {
                let (bad, good) = counts.withLock { $0 }
                if isBad ? good >= min(number + 1, 8) : bad >= min(number, 3) { break }
                try await Task.sleep(for: .milliseconds(2))
            }
            return isBad
                ? #"{"data":{"nonsense":1}}"# : #"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"#
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let bad = try await app.enqueue(add("Soup"), options: MutationOptions(lane: "bad"))
            for _ in 0..<8 { _ = try await app.enqueue(rateOdd("1"), options: MutationOptions(lane: "good")) }
            try await quickRunner(app) { $0.maximumFaults = 3 }.drain()
            #expect(try bad.status()?.state == .deadLetter)
            #expect(counts.withLock { $0.bad } == 3)
            #expect(counts.withLock { $0.good } == 8)
        }
    }

    @Test("The faults of a run do not count in the runner's next")
    func faultsOfRun() async throws {
        let faults = Mutex(2)
        let isAway = Flag()
        isAway.set()
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            let isFault = faults.withLock { count in
                count -= 1
                return count >= 0
            }
            if isFault { return #"{"data":{"nonsense":1}}"# }
            if isAway.isSet { throw TransportError(.unreachable, "away") }
            return added("1", "Soup")
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let receipt = try await app.enqueue(add("Soup"))
            let runner = quickRunner(app) { $0.maximumFaults = 3 }
            let service = Task { try await runner.run() }
            try await eventually { server.requests.count > 2 }
            service.cancel()
            try await service.value
            faults.withLock { $0 = 1 }
            isAway.set(false)
            try await runner.drain()
            #expect(try receipt.status()?.state == .applied)
        }
    }

    @Test("The runner that has counted a mutation's faults counts them anew once the mutation is replayed")
    func faultsOfReplay() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, _ in
            number < 3 ? #"{"data":{"nonsense":1}}"# : added("1", "Soup")
        }
        try await expectAppliedOnceReplayed(add("Soup"), by: server, schema: schema) { $0.maximumFaults = 2 }
    }

    @Test("Attempts that found no server do not count as its faults")
    func offlineIsNoFault() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, _ in
            if number < 6 { throw TransportError(.unreachable, "away") }
            if number < 8 { throw TransportError(.status, "oh", status: 500) }
            return added("1", "Soup")
        }
        let status = try await settled(add("Soup"), by: server, schema: schema) { $0.maximumFaults = 3 }
        #expect(status.state == .applied)
    }

    @Test("Attempts whose answers were lost do not count as the server's faults")
    func lostIsNoFault() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, _ in
            if number < 6 { throw TransportError(.interrupted, "lost") }
            return added("1", "Soup")
        }
        let status = try await settled(add("Soup"), by: server, schema: schema) { $0.maximumFaults = 2 }
        #expect(status.state == .applied)
        #expect(server.requests.count == 7)
    }

    @Test(
        "An answer with nothing, a temporary id or another mutation's where the real id should be gives none",
        arguments: ["", "own", "other"])
    func otherTemporaryID(_ kind: String) async throws {
        let (own, other) = (TemporaryObjectID(), TemporaryObjectID())
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            switch number {
            case 0: added(kind == "own" ? own.text : kind == "other" ? other.text : "", "Soup")
            case 1: added("r2", "Bread")
            default: #"{"data":{"rate":{"__typename":"Recipe","id":"r2","stars":5}}}"#
            }
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            func expected(_ id: TemporaryObjectID, _ title: String) -> Value {
                ["add": ["__typename": "Recipe", "id": id.value, "title": .string(title)]]
            }
            let first = try await app.enqueue(
                add("Soup"), options: .init(optimisticResponse: expected(own, "Soup"), temporaryIDs: [own]))
            let second = try await app.enqueue(
                add("Bread"), options: .init(optimisticResponse: expected(other, "Bread"), temporaryIDs: [other]))
            let lost = try await app.enqueue(rateOdd(own.value))
            let rated = try await app.enqueue(rateOdd(other.value))
            try await quickRunner(app).drain()
            #expect(try first.status()?.state == .applied)
            #expect(try second.status()?.state == .applied)
            #expect(try lost.status()?.failure?.kind == .temporaryIDLost)
            #expect(try rated.status()?.state == .applied)
            #expect(try app.records.check().isSound)
        }
    }

    @Test("An answer that comes after the deadline is taken, and nothing is sent again")
    func late() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _ in
            try await Task.sleep(for: .milliseconds(60))
            return added("1", "Soup")
        }
        let status = try await settled(add("Soup"), by: server, schema: schema) { $0.timeout = .milliseconds(1) }
        #expect(status.state == .applied)
        #expect(server.requests.count == 1)
    }

    @Test("A mutation that takes effect while its repeat is under way takes effect once, and the answer is taken")
    func lateEffect() async throws {
        let effects = Mutex<[String: String]>([:])
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            let key = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? ""
            func effect() -> String {
                effects.withLock { effects in
                    if let answer = effects[key] { return answer }
                    effects[key] = added("r\(effects.count)", "Soup")
                    return effects[key] ?? ""
                }
            }
            guard number > 0 else { throw TransportError(.timedOut, "late") }
            // What had been sent first arrives now, and then the repeat.
            let first = effect()
            #expect(effect() == first)
            return first
        }
        #expect(try await settled(add("Soup"), by: server, schema: schema).state == .applied)
        #expect(effects.withLock { $0.count } == 1)
    }

    @Test(
        "An optimistic response that does not fit its operation is refused, and nothing is queued",
        arguments: [
            [:], ["rate": .null], ["rate": ["id": "1"]], ["add": ["__typename": "Recipe", "id": "1", "title": "x"]],
            ["rate": ["__typename": "Recipe", "id": "1", "stars": "five"]],
            ["rate": ["__typename": "Cook", "id": "1"]],
        ] as [Value])
    func misfit(_ response: Value) async throws {
        let server = ScriptedServer(ScriptedServer.key) { _ in throw TransportError(.unreachable, "away") }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let error = await #expect(throws: LarderError.self) {
                try await app.enqueue(rateOdd("1"), options: .init(optimisticResponse: response))
            }
            #expect(error?.code == .data)
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("An error whose path has no steps is of the request: the mutation had no effect")
    func emptyPath() async throws {
        let server = ScriptedServer(ScriptedServer.key) { (_: GraphQLRequest) in
            #"{"data":null,"errors":[{"message":"no","path":[]}]}"#
        }
        #expect(try await settled(add("Soup"), by: server, schema: schema).failure?.kind == .rejected)
    }

    @Test("An error of its only other field rejects a mutation that also selects __typename")
    func typeName() async throws {
        let server = ScriptedServer(ScriptedServer.key) { (_: GraphQLRequest) in
            #"{"data":null,"errors":[{"message":"no","path":["mine"],"extensions":{"code":"BAD"}}]}"#
        }
        let operation = GraphQLOperation(#"mutation { __typename mine: add(title: "Soup") { id } }"#)
        #expect(try await settled(operation, by: server, schema: schema).failure?.kind == .rejected)
    }

    @Test("What failed of a mutation that took effect in part is told as the server said it, and where")
    func inPart() async throws {
        let server = ScriptedServer(ScriptedServer.key) { (_: GraphQLRequest) in
            #"""
            {"data":{"addAll":[{"__typename":"Recipe","id":"1","title":"Soup","stars":null}]},
             "errors":[{"message":"late","errorType":"Timeout","errorInfo":{"after":5},"path":["addAll",0,"stars"]}]}
            """#
        }
        let operation = GraphQLOperation(#"mutation { addAll(titles: ["Soup"]) { id title stars } }"#)
        let status = try await settled(operation, by: server, schema: schema)
        #expect(status.state == .applied)
        let error = try #require(status.errors.first)
        #expect(error.path == ResponsePath([.field("addAll"), .index(0), .field("stars")]))
        #expect(error.errorType == "Timeout" && error.errorInfo == ["after": 5])
    }
}
