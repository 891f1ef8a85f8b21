import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Late answers and faults of servers and transports", .timeLimit(.minutes(10)))
struct SignInTests {
    private func rate(_ recipe: String, _ stars: Int64) -> GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($input: Rating!) { rate(input: $input) { id rating } }",
            variables: ["input": ["recipe": .string(recipe), "stars": .int(stars)]])
    }

    private static func rated(_ request: GraphQLRequest) throws -> String {
        guard case .object(let variables)? = try? Value(json: request.variables),
            case .object(let input)? = variables["input"], case .int(let stars)? = input["stars"],
            case .string(let recipe)? = input["recipe"]
        else { throw TransportError.away }
        return #"{"data":{"rate":{"__typename":"Recipe","id":"\#(recipe)","rating":\#(stars)}}}"#
    }

    @Test("A refusal of the old token that comes after signing in again does not pause the queue once more")
    func lateRefusal() async throws {
        let (firstIsSent, bothAreSent, signedIn) = (Flag(), Flag(), Flag())
        let server = ScriptedServer { request in
            if signedIn.isSet { return try Self.rated(request) }
            if !firstIsSent.isSet {
                firstIsSent.set()
                await bothAreSent.wait()
                throw TransportError(.status, "who?", status: 401)
            }
            bothAreSent.set()
            await signedIn.wait()
            throw TransportError(.status, "who was that?", status: 401)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipts = [
                try await app.enqueue(rate("1", 5), options: MutationOptions(lane: "a")),
                try await app.enqueue(rate("2", 5), options: MutationOptions(lane: "b")),
            ]
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            runner.resume()
            signedIn.set()
            for receipt in receipts { #expect(try await receipt.outcome(within: .seconds(300)).isApplied) }
            running.cancel()
            try await running.value
        }
    }

    @Test("That the server does not know the user of a field is not the mutation's fault, however often it says so")
    func unknownUser() async throws {
        let unknown = """
            {"data":null,"errors":[{"message":"who?","path":["rate"],"extensions":{"code":"UNAUTHENTICATED"}}]}
            """
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number < 4 ? ScriptedServer.body(unknown) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = quickRunner(app) { $0.maximumFaults = 2 }
            let running = Task { try await runner.run() }
            for count in 1...4 {
                try await eventually { server.requests.count == count && runner.state == .waitingForSignIn }
                runner.resume()
            }
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
        }
    }

    @Test("A transport that reports a cancellation of its own does not hold up the lane")
    func cancelledByItself() async throws {
        let server = ScriptedServer.rating { number in
            number == 0 ? (TransportError(.cancelled, "the sign-in was cancelled"), false) : nil
        }
        #expect(try await settled(by: server).state == .applied)
        #expect(server.effects == ["1 5"])
    }

    @Test("Headers that cannot be had are waited for, and nothing is set aside")
    func notPrepared() async throws {
        let tries = Mutex(0)
        let server = ScriptedServer { request in
            let number = tries.withLock { tries in
                tries += 1
                return tries
            }
            guard number > 2 else { throw TransportError(.notPrepared, "the keychain is locked") }
            return try Self.rated(request)
        }
        #expect(try await settled(rate("1", 5), by: server).state == .applied)
        #expect(tries.withLock { $0 } == 3)
    }

    @Test("A runner that works already is not begun a second time")
    func twice() async throws {
        let server = ScriptedServer { try Self.rated($0) }
        try await withStoreFixture(server) { (app) throws in
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .running }
            let error = await #expect(throws: LarderError.self) { try await runner.drain() }
            #expect(error?.code == .notRunnable)
            let receipt = try await app.enqueue(rate("1", 5))
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
            try await runner.drain()
        }
    }
}
