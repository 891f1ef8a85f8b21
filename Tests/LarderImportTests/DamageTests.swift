import Foundation
import Larder
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderImport

@Suite("Damaged sources", .timeLimit(.minutes(10)))
struct DamageTests {
    /// Expects that a file is found damaged whose rows can be read, with whatever `prepare` puts beside it.
    private func expectDamaged(
        sourceLocation: SourceLocation = #_sourceLocation, _ prepare: (_ folder: URL) throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "a.db")
            let fixture = try ForeignFixture(file.path, .records)
            try fixture.record("Cook:1", #"{"__typename":"Cook","id":"1","name":"Cook","specialty":null}"#)
            fixture.close()
            try prepare(folder)
            let source = try source(file.path, .appSync)
            _ = try await source.inspect()
            // The header counts free pages that are not there.
            var bytes = try Data(contentsOf: file)
            bytes[39] = 5
            try bytes.write(to: file)
            let error = await #expect(throws: ImportError.self, sourceLocation: sourceLocation) {
                _ = try await source.inspect()
            }
            #expect(error?.code == .damaged, sourceLocation: sourceLocation)
        }
    }

    @Test("Nothing is taken from a file that SQLite's own check finds damaged, also where its rows can be read")
    func readable() async throws {
        try await expectDamaged { _ in }
    }

    @Test("Nothing is taken from a damaged file that has a log beside it and is read as a copy")
    func readableCopy() async throws {
        try await expectDamaged { try Data("no log of this file".utf8).write(to: $0.appending(path: "a.db-wal")) }
    }

    @Test("A reference to nothing names no object whose type has several key fields")
    func absentOfSeveral() async throws {
        try await withTemporaryFolder { folder in
            let schema = """
                type Query { first: Seat second: Seat }
                type Seat @typePolicy(keyFields: "row number") { row: String! number: String! }
                """
            func key(_ number: String) -> String {
                CacheKey.text(type: "Seat", fields: [(name: "row", value: "B"), (name: "number", value: number)])
            }
            func reference(_ number: String) throws -> String {
                String(decoding: try JSONEncoder().encode(["$reference": key(number)]), as: UTF8.self)
            }
            let fixture = try ForeignFixture(folder.appending(path: "a.db").path, .records)
            try fixture.record("QUERY_ROOT", #"{"first":\#(reference("1")),"second":\#(reference("2"))}"#)
            try fixture.record(key("1"), #"{"__typename":"Seat","row":"B","number":"1"}"#)
            fixture.close()
            let report = try await source(fixture.path, schema: schema).inspect()
            #expect(report.omitted(.field, .danglingReference) == 1 && report.rootFields == .init(taken: 1))
        }
    }

    @Test("Whatever a file's bytes are, looking at it ends in a report or a typed error", arguments: [UInt64(1), 2, 3])
    func bytes(_ seed: UInt64) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.db").path, .records, .mutations, .subscriptions)
            for number in 0..<150 {
                try fixture.record(
                    "Cook:\(number)", #"{"__typename":"Cook","id":"\#(number)","name":"Cook","specialty":null}"#)
            }
            for number in 0..<30 {
                try fixture.mutation("\(number)", #"{"query":"mutation { rate(id: 1, stars: 1) { id } }"}"#)
            }
            fixture.close()
            let whole = try Data(contentsOf: URL(filePath: fixture.path))
            var random = SeededNumbers(seed: seed)
            let damaged = folder.appending(path: "damaged.db")
            let source = try source(damaged.path, .appSync) { $0.takesMutations = true }
            var reports = 0
            for round in 0..<25 {
                var bytes = whole
                for _ in 0..<Int.random(in: 1...8, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if round % 5 == 0 { bytes = bytes.prefix(Int.random(in: 0..<bytes.count, using: &random)) }
                try bytes.write(to: damaged)
                do throws(ImportError) {
                    let report = try await source.inspect()
                    reports += 1
                    #expect(report.records <= 1_000, "seed \(seed), round \(round)")
                } catch {
                    let isExpected = [.damaged, .foreign, .unreadable].contains(error.code)
                    #expect(isExpected, "seed \(seed), round \(round): \(error)")
                }
            }
            #expect(reports < 25, "seed \(seed)")
        }
    }
}
