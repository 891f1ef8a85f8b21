import CAllocations
import Foundation
import Larder

extension Bench {
    /// Watchers of the input's whole query: how long after a commit one has its state, and what an idle one holds.
    func watchWhole() async throws -> [BenchRow] {
        let text = try WholeText(input.body)
        let watched = try await WholeStore(input, text, folder: freshPath("whole"))
        let plain = try await WholeStore(input, text, folder: freshPath("whole"))
        var states = try watched.partition.watch(watched.operation).makeAsyncIterator()
        _ = await states.next()
        let times = try await Measurement.times(
            rounds: rounds * 3,
            [
                {
                    try await Measurement.time {
                        let title = try await watched.change()
                        while let state = await states.next(), text.title(in: state.response) != title {}
                    }
                },
                { try await Measurement.time { try await plain.change() } },
                { try Measurement.time { keep(try plain.partition.read(plain.operation)) } },
            ])
        let reading = Measurement.Times(
            median: times[0].median - times[1].median, fastest: times[0].fastest - times[1].fastest)
        var rows = [
            BenchRow(
                name: "watch-whole", what: "from a commit to the state of a watcher of the whole query",
                [reading, times[2]], floorName: "one read", reach: .ratio(2))
        ]
        try watched.store.close()
        let count = min(largest, 1_000)
        for (name, what, operation) in [
            ("equal", "the whole query", { _ in plain.operation }),
            ("different", "as many operations with the whole query", { plain.operation(number: $0) }),
        ] as [(String, String, (Int) -> GraphQLOperation)] {
            guard let held = try await held(by: count, in: plain.partition, operation) else { continue }
            rows.append(
                BenchRow(
                    name: "watch-idle-\(name)", what: "what one of \(count) idle watchers of \(what) holds",
                    unit: .bytes, value: held, reach: .most(40_000)))
        }
        try plain.store.close()
        return rows
    }

    /// The bytes that each of so many watchers holds, once it has its first state; nil where the system does not say.
    private func held(
        by count: Int, in partition: Partition, _ operation: (Int) -> GraphQLOperation
    ) async throws -> Double? {
        let before = larder_allocations_trim()
        guard before >= 0 else { return nil }
        var watchers: [Watch.Iterator] = []
        for number in 0..<count {
            var states = try partition.watch(operation(number)).makeAsyncIterator()
            guard await states.next()?.response != nil else { throw BenchFailure("a watcher has no state") }
            watchers.append(states)
        }
        let after = larder_allocations_trim()
        return withExtendedLifetime(watchers) { Double(after - before) / Double(count) }
    }
}

/// The input's response as text, in which one title can be another.
private struct WholeText {
    private enum Step {
        case name(String)
        case index(Int)
    }

    private let path: [Step]
    private let parts: [String]

    init(_ body: [UInt8]) throws {
        guard let response = try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any],
            var data = response["data"].map({ identified($0) })
        else { throw BenchFailure("the response has no data") }
        guard let path = Self.mark(&data) else { throw BenchFailure("the response has no title") }
        self.path = path
        let json = try JSONSerialization.data(withJSONObject: data)
        parts = String(decoding: json, as: UTF8.self).components(separatedBy: Self.place)
        guard parts.count == 2 else { throw BenchFailure("the response has another such title") }
    }

    private static let place = "the title that is changed"

    /// Changes the first title.
    private static func mark(_ value: inout Any) -> [Step]? {
        if var members = value as? [String: Any] {
            for name in members.keys.sorted() {
                guard var member = members[name] else { continue }
                if name == "title", member is String {
                    members[name] = place
                    value = members
                    return [.name(name)]
                }
                if let rest = mark(&member) {
                    members[name] = member
                    value = members
                    return [.name(name)] + rest
                }
            }
        } else if var list = value as? [Any] {
            for index in list.indices {
                if let rest = mark(&list[index]) {
                    value = list
                    return [.index(index)] + rest
                }
            }
        }
        return nil
    }

    func json(title: String) -> [UInt8] { Array((parts[0] + title + parts[1]).utf8) }

    func title(in response: Response?) -> String? {
        guard let response, case .name(let first)? = path.first else { return nil }
        var value = response[first]
        for step in path.dropFirst() {
            switch step {
            case .name(let name): value = value?[name]
            case .index(let index): value = value?[index]
            }
        }
        return value?.string
    }
}

/// A store that holds the input's response.
private final class WholeStore {
    let store: Store
    let partition: Partition
    let operation: GraphQLOperation
    private let document: String
    private let text: WholeText
    private var round = 0

    init(_ input: BenchInput, _ text: WholeText, folder: String) async throws {
        self.text = text
        document = input.texts.document
        operation = GraphQLOperation(document)
        store = try Store.open(at: URL(filePath: folder), schemaText: [input.texts.schema])
        partition = try store.partition()
        try await change()
    }

    /// Writes the response with another title.
    @discardableResult
    func change() async throws -> String {
        round += 1
        let title = "Title \(round)"
        try await partition.write(operation, json: text.json(title: title))
        return title
    }

    /// The same query as another document.
    func operation(number: Int) -> GraphQLOperation { GraphQLOperation("\(document)\n# \(number)\n") }
}
