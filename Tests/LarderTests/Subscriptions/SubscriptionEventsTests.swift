import LarderGraphQL
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("Events that wait for the reader of a subscription", .timeLimit(.minutes(5)))
struct SubscriptionEventsTests {
    /// The same rules over a plain array.
    private struct Model {
        enum Waiting: Equatable {
            case data(Int), state(Int), missed(Int)
        }

        let limit: Int
        var waiting: [Waiting] = []
        var missed = 0

        private func isData(_ place: Int) -> Bool { if case .data = waiting[place] { true } else { false } }

        mutating func add(_ number: Int) {
            if waiting.indices.count(where: isData) == limit, let oldest = waiting.indices.first(where: isData) {
                waiting.remove(at: oldest)
                missed += 1
                let isBetween = oldest > 0 && oldest < waiting.count
                if isBetween, !isData(oldest - 1), !isData(oldest) { waiting.remove(at: oldest - 1) }
            }
            waiting.append(.data(number))
        }

        mutating func set(_ number: Int) {
            if case .state? = waiting.last { waiting.removeLast() }
            waiting.append(.state(number))
        }

        mutating func next() -> Waiting? {
            if missed > 0 {
                defer { missed = 0 }
                return .missed(missed)
            }
            return waiting.isEmpty ? nil : waiting.removeFirst()
        }
    }

    private func response(_ number: Int) -> Response {
        Response(buffer: nil, errors: [GraphQLError(message: "\(number)")])
    }

    private func told(_ event: SubscriptionEvent?) throws -> Model.Waiting? {
        switch event {
        case .data(let response)?: .data(try #require(response.errors.first.flatMap { Int($0.message) }))
        case .state(let state)?: .state(state.gapCount)
        case .missed(let count)?: .missed(count)
        case nil: nil
        }
    }

    @Test("A reader gets events and states in their order, and so many events wait at most", arguments: [0, 1, 2, 7])
    func order(limit: Int) async throws {
        for index in 0..<40 {
            let seed = TestSeed.of("waiting events", index)
            var random = SeededNumbers(seed: seed)
            let events = SubscriptionEvents(limit: limit)
            var model = Model(limit: max(1, limit))
            for step in 1...300 {
                switch Int.random(in: 0..<(index % 3 + 4), using: &random) {
                case 0:
                    var state = SubscriptionState()
                    state.gapCount = step
                    events.set(state)
                    model.set(step)
                case 1, 2:
                    guard let expected = model.next() else { continue }
                    try #require(try told(await events.next()) == expected, "seed \(seed), step \(step)")
                default:
                    events.add(response(step))
                    model.add(step)
                }
            }
            events.end()
            while let expected = model.next() {
                try #require(try told(await events.next()) == expected, "seed \(seed)")
            }
            #expect(await events.next() == nil, "seed \(seed)")
        }
    }

    @Test("An event that was taken is freed while others wait")
    func lettingGo() async throws {
        let events = SubscriptionEvents(limit: 100)
        weak var first: ResponseBuffer?
        do {
            let schema = try SchemaIndex(parsing: "type Query { a: Int }")
            let operation = try CompiledOperation(operation: nil, in: Document(parsing: "{ a }"), schema).bound()
            let parsed = try ParsedResponse.parse(Array(#"{"data":{"a":1}}"#.utf8), along: operation.layout)
            let response = try parsed.assembled()
            first = response.buffer
            events.add(response)
        }
        for number in 0..<50 { events.add(response(number)) }
        #expect(first != nil)
        _ = await events.next()
        #expect(first == nil)
    }

    @Test("A subscription has room for 256 events, steps of 15 seconds, and pauses from half a second to a minute")
    func defaults() {
        #expect(SubscriptionOptions().bufferSize == 256)
        let pacing = SubscriptionPacing()
        #expect(pacing.opening == .seconds(15))
        #expect(pacing.starting == .seconds(15))
        #expect(pacing.backoff.pause(after: 1, fraction: 1) == .milliseconds(500))
        #expect(pacing.backoff.pause(after: 40, fraction: 1) == .seconds(60))
    }

    @Test("A reader whose task is cancelled gets no event, and the next one gets it")
    func cancelled() async throws {
        let events = SubscriptionEvents(limit: 2)
        events.add(response(7))
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await events.next()
        }
        let taken = try told(await reading.value)
        #expect(taken == nil)
        let left = try told(await events.next())
        #expect(left == .data(7))
    }

    @Test("A state is told whose error has the same code as the one before, and another message")
    func otherMessage() async throws {
        let events = SubscriptionEvents(limit: 2)
        var state = SubscriptionState()
        state.error = LarderError(.serverErrors, "first")
        events.set(state)
        guard case .state? = await events.next() else { throw Silence() }
        state.error = LarderError(.serverErrors, "second")
        events.set(state)
        // A state that was not added leaves nothing to wait for.
        events.end()
        guard case .state(let told)? = await events.next() else { throw Silence() }
        #expect(told.error?.message == "second")
    }
}
