import Larder
import Testing

@Suite("Work that several callers wait for", .timeLimit(.minutes(5)))
struct JoinedExchangeTests {
    @Test("Work that has ended is joined by no later caller")
    func ended() async throws {
        let exchange = JoinedExchange<Int>()
        let tickets = [try #require(exchange.join()), try #require(exchange.join())]
        exchange.start { 7 }
        for ticket in tickets {
            #expect(try await exchange.value(for: ticket, deadline: .now + .seconds(60)) == 7)
        }
        #expect(exchange.join() == nil)
    }
}
