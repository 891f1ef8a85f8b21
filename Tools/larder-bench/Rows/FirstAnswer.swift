import Foundation
import Larder

extension Bench {
    /// From the start of a process to its first answer.
    func firstAnswer() async throws -> [BenchRow] {
        let path = freshPath("first")
        defer { remove(path) }
        let url = URL(filePath: path)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        try Data(input.texts.schema.utf8).write(to: url.appending(path: "schema.graphqls"))
        try Data(input.texts.document.utf8).write(to: url.appending(path: "operation.graphql"))
        let store = try Store.open(at: url.appending(path: "store"), schemaText: [input.texts.schema])
        guard let body = try JSONSerialization.jsonObject(with: Data(input.body)) as? [String: Any],
            let data = body["data"]
        else { throw BenchFailure("the response has no data") }
        let json = try JSONSerialization.data(withJSONObject: identified(data))
        try await store.partition().write(GraphQLOperation(input.texts.document), json: Array(json))
        try store.close()
        var parts: [String: [Double]] = [:]
        var first: [Double] = []
        let times = try await Measurement.times(
            rounds: rounds,
            [
                {
                    let (seconds, output) = try ChildProcess.run(ChildProcess.own(["answer-once", path]))
                    var all = 0.0
                    for line in output.split(separator: "\n") {
                        let words = line.split(separator: " ")
                        guard words.count == 2, let time = Double(words[1]) else { continue }
                        parts[String(words[0]), default: []].append(time)
                        if words[0] != "texts", words[0] != "again" { all += time }
                    }
                    first.append(all)
                    return seconds
                },
                { try ChildProcess.run(ChildProcess.own(["answer-once"])).seconds },
            ])
        func median(_ values: [Double]) -> Double { values.isEmpty ? 0 : values.sorted()[values.count / 2] }
        let note = ["texts", "schema", "partition", "read", "again"].map { part in
            String(format: "\(part) %.2f ms", median(parts[part] ?? []) * 1e3)
        }.joined(separator: ", ")
        var floor = times[1]
        let again = median(parts["again"] ?? []) + median(parts["texts"] ?? [])
        floor.median += again
        floor.fastest += again
        return [
            BenchRow(
                name: "first-answer", what: "a process that opens the store and reads the query", [times[0], floor],
                floorName: "one that does nothing, and the second read", reach: .excess(0.003), note: note),
            BenchRow(
                name: "first-answer-inside", what: "opening and the first read, as the process sees them",
                value: median(first), floorName: "the second read", floor: median(parts["again"] ?? []),
                reach: .excess(0.003)),
        ]
    }

    /// Environments that are opened one after the other: what stays open of those that were left.
    func manyEnvironments() async throws -> [BenchRow] {
        let path = freshPath("environments")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: ItemShop.schemaText))
        let count = min(largest, 1_000)
        let item = GraphQLOperation("{ item(id: 1) { id title } }")
        func descriptors() -> Int { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? 0 }
        var (few, most) = ((descriptors: 0, space: 0), (descriptors: 0, space: 0))
        var times: [Double] = []
        for number in 0..<count {
            guard let url = URL(string: "https://e\(number).example/graphql") else {
                throw BenchFailure("a URL is none")
            }
            let environment = BackendEnvironment(name: "e\(number)", api: .init(url: url))
            times.append(
                try await Measurement.time {
                    let app = try await store.switch(to: environment).partition
                    try await app.write(item, json: Array(#"{"item":{"id":"1","title":"T"}}"#.utf8))
                    keep(try app.read(item))
                })
            most.descriptors = max(most.descriptors, descriptors())
            most.space = max(most.space, Memory.reserved ?? 0)
            if number == min(9, count - 1) { few = most }
        }
        try store.close()
        let waits = Measurement.Waits(times)
        return [
            BenchRow(
                name: "environments", what: "one of \(count) environments entered, written to and read", waits),
            BenchRow(
                name: "environments-files", what: "most files open on the way", unit: .allocations,
                value: Double(most.descriptors), floorName: "with ten", floor: Double(few.descriptors),
                reach: .ratio(1.2)),
            BenchRow(
                name: "environments-space", what: "most address space on the way", unit: .bytes,
                value: Double(most.space), floorName: "with ten", floor: Double(few.space), reach: .ratio(1.2)),
        ]
    }
}

/// The same data, in which every object has an id, since the store asks for ids that the recorded query leaves out.
func identified(_ value: Any, _ path: String = "") -> Any {
    switch value {
    case let members as [String: Any]:
        var object = members.reduce(into: [String: Any]()) {
            $0[$1.key] = identified($1.value, "\(path)/\($1.key)")
        }
        if object["id"] == nil { object["id"] = path }
        return object
    case let list as [Any]: return list.enumerated().map { identified($1, "\(path)/\($0)") }
    default: return value
    }
}
