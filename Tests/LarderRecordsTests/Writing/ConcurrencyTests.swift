import LarderGraphQL
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Many at once", .timeLimit(.minutes(10)))
struct ConcurrencyTests {
    @Test("Writes that wait together are made in order, and one that fails leaves the others alone")
    func groupCommits() async throws {
        struct GivenUp: Error {}
        try await withSampleCache(movieSchema) { sample in
            let cache = sample.cache
            let seen = Recorded()
            cache.observe { seen.append($0.position.number) }
            var outcomes: [Int: Bool] = [:]
            let operations = try (0..<120).map { number in
                try sample.operation("{ movie(id: \(number)) { id title place { x } } a: note(text: \"\(number)\") }")
            }
            await withTaskGroup(of: (Int, Bool).self) { group in
                for number in 0..<120 {
                    let operation = operations[number]
                    group.addTask {
                        do {
                            let text = #"""
                                {"data":{"movie":{"__typename":"Movie","id":"\#(number)","title":"T\#(number)",
                                "place":{"x":\#(number)}},
                                "a":"N\#(number)"}}
                                """#
                            let parsed = try ParsedResponse.parse(Array(text.utf8), along: operation.layout)
                            if number % 7 == 3 {
                                _ = try await cache.update(operation) { _ in throw GivenUp() }
                            } else if number % 2 == 0 {
                                _ = try await cache.update(operation) { _ in parsed }
                            } else {
                                _ = try await cache.write(parsed, of: operation)
                            }
                            return (number, true)
                        } catch { return (number, false) }
                    }
                }
                for await (number, isDone) in group { outcomes[number] = isDone }
            }
            for number in 0..<120 {
                #expect(outcomes[number] == (number % 7 != 3))
                if number % 7 == 3 {
                    #expect(try !sample.cache.read(operations[number]).response.isComplete)
                } else {
                    #expect(
                        try sample.json(operations[number]) == #"""
                            {"movie":{"id":"\#(number)","title":"T\#(number)","place":{"x":\#(number)}},"a":"N\#(number)"}
                            """#)
                }
            }
            let numbers = seen.all
            #expect(numbers == Array(1...UInt64(numbers.count)))
            #expect(numbers.count == (0..<120).count { $0 % 7 != 3 })
        }
    }

    @Test("A write that the next one in the same commit follows is seen by it")
    func updatesFollowEachOther() async throws {
        try await withSampleCache(movieSchema) { sample in
            let cache = sample.cache
            let operation = try sample.operation("{ count }")
            try await sample.write("{ count }", data: #"{"count":0}"#)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<60 {
                    group.addTask {
                        _ = try? await cache.update(operation) { answer in
                            let count = (answer.response["count"]?.int ?? 0) + 1
                            return try ParsedResponse.parse(
                                Array("{\"data\":{\"count\":\(count)}}".utf8), along: operation.layout)
                        }
                    }
                }
            }
            #expect(try sample.json("{ count }") == #"{"count":60}"#)
        }
    }

    @Test("Reads during writes see whole commits only")
    func snapshots() async throws {
        try await withSampleCache(movieSchema) { sample in
            let cache = sample.cache
            let query = "{ count box { x y z } movie(id: 1) { year points { x } } }"
            let operation = try sample.operation(query)
            func response(_ number: Int) throws -> ParsedResponse {
                let points = Array(repeating: "{\"x\":\(number)}", count: number % 5).joined(separator: ",")
                return try ParsedResponse.parse(
                    Array(
                        #"""
                        {"data":{"count":\#(number),"box":{"x":\#(number),"y":\#(number),"z":\#(number)},
                        "movie":{"__typename":"Movie","id":"1","year":\#(number),"points":[\#(points)]}}}
                        """#.utf8), along: operation.layout)
            }
            _ = try await cache.write(response(0), of: operation)
            let torn = await withTaskGroup(of: Int.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        var torn = 0
                        for _ in 0..<200 {
                            guard let answer = try? cache.read(operation).response, answer.isComplete,
                                let count = answer["count"]?.int
                            else {
                                torn += 1
                                continue
                            }
                            let points = answer["movie"]?["points"]?.elements.map { $0["x"]?.int } ?? []
                            let box = ["x", "y", "z"].map { answer["box"]?[$0]?.int }
                            if (points + box + [answer["movie"]?["year"]?.int]).contains(where: { $0 != count })
                                || points.count != Int(count) % 5
                            {
                                torn += 1
                            }
                        }
                        return torn
                    }
                }
                for number in 1...60 {
                    if let parsed = try? response(number) { _ = try? await cache.write(parsed, of: operation) }
                }
                return await group.reduce(0, +)
            }
            #expect(torn == 0)
        }
    }

    @Test("A second cache in the same folder of one process is refused")
    func openedTwice() async throws {
        try await withSampleCache(movieSchema) { sample in
            do throws(RecordError) {
                _ = try RecordCache(folder: sample.path, stamp: "sample")
                Issue.record("opened twice")
            } catch { #expect(error.code == .alreadyOpen) }
            try sample.reopen()
        }
    }
}

/// What observers were told, in order.
private final class Recorded: Sendable {
    private let numbers = Mutex<[UInt64]>([])
    func append(_ number: UInt64) { numbers.withLock { $0.append(number) } }
    var all: [UInt64] { numbers.withLock { $0 } }
}
