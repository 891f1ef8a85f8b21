import Foundation
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("What limits a collection of garbage", .timeLimit(.minutes(10)))
struct KeptGarbageTests {
    @Test("A collection keeps the objects that the list changes of a queued mutation insert or remove")
    func listChanges() async throws {
        try await withSampleCache("type Query { nodes: [Node] } type Node { id: ID! }") { sample in
            let nodes = (1...4).map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[\#(nodes)]}"#)
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[{"id":"1"}]}"#)
            let edits = [
                ListEdit(field: "nodes", .insert(key: "Node:2", at: .end)),
                ListEdit(field: "nodes", .remove(key: "Node:3")),
            ]
            sample.cache.replaceLayers([OptimisticLayer(key: try #require(AppliedKey("m")), edits: edits)])
            _ = try await sample.cache.collectGarbage(keeping: StatedRoots())
            sample.cache.replaceLayers([])
            #expect(try sample.cache.inspect.keys() == ["Node:1", "Node:2", "Node:3", "QUERY_ROOT"])
        }
    }

    @Test("A write of a collection removes 3,072 objects at most")
    func largestWrite() async throws {
        try await withSampleCache("type Query { nodes: [Node] } type Node { id: ID! }") { sample in
            let operation = try sample.operation("{ nodes { id } }")
            for count in [8_200, 0] {
                let nodes = (0..<count).map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
                let parsed = try ParsedResponse.parse(
                    Array(#"{"data":{"nodes":[\#(nodes)]}}"#.utf8), along: operation.layout)
                _ = try await sample.cache.write(parsed, of: operation)
            }
            let told = Mutex([0])
            let report = try await sample.cache.collectGarbage(
                keeping: StatedRoots(), sliceTime: .seconds(60)
            ) { progress in
                told.withLock { $0.append(progress.removed) }
            }
            #expect(report.objects == 8_200)
            let counts = told.withLock { $0 }
            let steps = zip(counts, counts.dropFirst()).map { $1 - $0 }
            #expect(steps.count >= 3 && counts.contains { $0 >= 8_200 }, "\(steps)")
            #expect(steps.allSatisfy { $0 <= 3_072 }, "\(steps)")
        }
    }

    @Test("A collection marks in slices that end when their time is over, and tells of each")
    func markingSlices() async throws {
        try await withSampleCache("type Query { nodes: [Node] } type Node { id: ID! }") { sample in
            let nodes = (1...96).map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[\#(nodes)]}"#)
            let told = Mutex(0)
            let report = try await sample.cache.collectGarbage(
                keeping: StatedRoots(), isRehearsal: true, sliceTime: .zero
            ) { _ in
                told.withLock { $0 += 1 }
            }
            #expect((report.objects, report.kept) == (0, 97))
            // A slice looks at the time after each sixteen objects.
            #expect(told.withLock { $0 } == 7)
        }
    }

    @Test("A damaged record that is needed ends the collection, and no key is removed", arguments: [1, 70])
    func damaged(fieldCount: Int) async throws {
        let names = (0..<fieldCount).map { "f\($0)" }
        let fields = names.map { "\($0): Int" }.joined(separator: " ")
        let schema = try SchemaIndex(
            parsing: "type Query { wide: Wide other: Wide } type Wide { id: ID! \(fields) }")
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(schema, path: folder.appending(path: "records").path)
            let values = names.map { "\"\($0)\":7" }.joined(separator: ",")
            try await sample.write(
                "{ wide { id \(names.joined(separator: " ")) } }", data: "{\"wide\":{\"id\":\"1\",\(values)}}")
            try await sample.write("{ other { id } }", data: #"{"other":{"id":"2"}}"#)
            try await sample.write("{ other { id } }", data: #"{"other":null}"#)

            let generation = sample.cache.generations.current
            let tables = generation.tables
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            let id = try #require(try tables.record(of: "Wide:1", transaction))
            if fieldCount > 64 {
                let field = try #require(try generation.names.number(of: "f0", transaction, tables))
                let key = SplitFieldKey(record: id, field: field).bytes
                var bytes = try transaction.get(key.rawSpan, in: tables.fields)?.withUnsafeBytes { Array($0) } ?? []
                try #require(bytes.count > 4)
                // The field gets another number under the old checksum.
                bytes[4] ^= 1
                try transaction.put(key.rawSpan, bytes.rawSpan, in: tables.fields)
            } else {
                var bytes = try transaction.get(id, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
                try #require(!bytes.isEmpty)
                // The record gets another last byte under the old checksum.
                bytes[bytes.count - 1] ^= 1
                try transaction.put(id, bytes.rawSpan, in: tables.records)
            }
            try transaction.commit()

            let error = await #expect(throws: RecordError.self) {
                _ = try await sample.cache.collectGarbage(keeping: StatedRoots())
            }
            #expect(error?.code == .damaged)
            let keys = try sample.cache.inspect.statistics().tables.first { $0.name == "keys" }
            #expect(keys?.entries == 3)
            try sample.cache.close()
        }
    }

    @Test("A collection marks in slices, and tells how many records it has reached so far")
    func markedInSlices() async throws {
        try await withSampleCache("type Query { nodes: [Node] } type Node { id: ID! }") { sample in
            let nodes = (0..<200).map { #"{"id":"\#($0)"}"# }.joined(separator: ",")
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[\#(nodes)]}"#)
            let told = Mutex<[Int]>([])
            let report = try await sample.cache.collectGarbage(keeping: StatedRoots(), sliceTime: .zero) { progress in
                told.withLock { $0.append(progress.marked) }
            }
            #expect((report.objects, report.kept) == (0, 201))
            #expect(told.withLock { $0.count } > 5)
            #expect(told.withLock { $0.last } == 201)
        }
    }

    /// A queue that cannot be read.
    private final class LockedQueue: LayerSource {
        func contents(of layers: [OptimisticLayer]) throws(RecordError) -> [LayerFinding] {
            throw RecordError(.busy, "another program keeps the queue locked")
        }
    }

    @Test("A collection removes nothing where it cannot read what queued mutations name")
    func unreadableQueue() async throws {
        try await withSampleCache("type Query { nodes: [Node] } type Node { id: ID! }") { sample in
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[{"id":"1"},{"id":"2"}]}"#)
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[{"id":"1"}]}"#)
            let key = try #require(AppliedKey("m"))
            sample.cache.replaceLayers([OptimisticLayer(key: key, touching: nil, number: 1, of: LockedQueue())])
            let error = await #expect(throws: RecordError.self) {
                _ = try await sample.cache.collectGarbage(keeping: StatedRoots())
            }
            #expect(error?.message.contains("keeps the queue locked") == true, "\(error?.message ?? "none")")
            sample.cache.replaceLayers([])
            #expect(try sample.cache.inspect.keys() == ["Node:1", "Node:2", "QUERY_ROOT"])
        }
    }
}
