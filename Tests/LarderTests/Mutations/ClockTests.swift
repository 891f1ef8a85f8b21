import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private let year: TimeInterval = 365 * 86_400

extension TestClock {
    fileprivate func jump(_ seconds: TimeInterval) { advance(by: .seconds(seconds)) }
}

@Suite("A clock that jumps", .timeLimit(.minutes(10)))
struct ClockTests {
    @Test("Order follows the queue and not the wall clock, which moves", arguments: [-year, year])
    func order(_ jump: TimeInterval) async throws {
        let server = ScriptedServer.rating()
        try await withClock(server) { (app, clock) throws in
            for stars in 1...4 {
                try await app.enqueue(giveStars("1", stars))
                clock.jump(stars % 2 == 0 ? jump : -2 * jump)
            }
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 1", "1 2", "1 3", "1 4"])
        }
    }

    @Test(
        "A year ahead, what was to expire is set aside, can be replayed, and is not lost; a year back, it is sent",
        arguments: [-year, year])
    func expiry(_ jump: TimeInterval) async throws {
        let server = ScriptedServer.rating()
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(expires: clock.now + 3_600))
            let next = try await app.enqueue(giveStars("1", 4))
            clock.jump(jump)
            try await quickRunner(app).drain()
            #expect(try next.status()?.state == .applied)
            if jump > 0 {
                #expect(try receipt.status()?.state == .deadLetter)
                #expect(try receipt.status()?.failure?.kind == .expired)
                try await app.replayMutation(receipt.id, expires: clock.now + 3_600)
                try await quickRunner(app).drain()
            }
            #expect(try receipt.status()?.state == .applied)
            #expect(server.effects == (jump > 0 ? ["1 4", "1 5"] : ["1 5", "1 4"]))
        }
    }

    @Test(
        "A pause that was asked for ends when the clock jumps, in either direction, and no wait is a year long",
        arguments: [-year, year])
    func retryAfter(_ jump: TimeInterval) async throws {
        let server = ScriptedServer.rating { number in
            number == 0 ? (TransportError(.status, "busy", status: 429, retryAfter: .seconds(3_600)), false) : nil
        }
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { try receipt.status()?.failure != nil }
            let error = await #expect(throws: LarderError.self) {
                try await receipt.outcome(within: .milliseconds(300))
            }
            #expect(error?.code == .unsettled)
            clock.jump(jump)
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            #expect(server.requests.count == 2)
            running.cancel()
            try await running.value
        }
    }

    @Test("Of a century that a server asks for it gets a day")
    func longestPause() async throws {
        let century = Duration.seconds(100 * 366 * 86_400)
        let server = ScriptedServer.rating { number in
            number == 0 ? (TransportError(.status, "busy", status: 429, retryAfter: century), false) : nil
        }
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { try receipt.status()?.failure != nil }
            clock.jump(86_401)
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
        }
    }

    @Test("A clock that is set back again and again does not lengthen the backoff")
    func backoff() async throws {
        let server = ScriptedServer.rating { $0 < 6 ? (.away, false) : nil }
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            let setting = Task {
                while !Task.isCancelled {
                    clock.jump(-3_600)
                    try await Task.sleep(for: .milliseconds(7))
                }
            }
            defer { setting.cancel() }
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            #expect(server.effects == ["1 5"])
            running.cancel()
            try await running.value
        }
    }

    @Test("A failure says when it came")
    func failure() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            clock.jump(60)
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.failure?.time == clock.now)
        }
    }

    @Test("The failure of a mutation that was discarded says when that was")
    func discarded() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withClock(server) { (app, clock) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            clock.jump(60)
            try await app.discardMutation(receipt.id, dependents: .release)
            let failure = try receipt.status()?.failure
            #expect(failure?.kind == .rejected && failure?.time == clock.now)
        }
    }
}
