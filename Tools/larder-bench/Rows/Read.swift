import CLMDB
import Foundation
import LarderRecords

extension Bench {
    func read() async throws -> [BenchRow] {
        try await withInputCache { cache in
            let response = try cache.read(input.operation).response
            guard response.isComplete, let data = response.data else {
                throw BenchFailure("the cache does not answer what was written")
            }
            var entries: [(key: [UInt8], value: [UInt8])] = []
            collect(data, at: "QUERY_ROOT", &entries)
            let path = freshPath("raw")
            defer { remove(path) }
            let raw = try RawEnvironment(folder: path)
            let table = try raw.table("records")
            try raw.write { transaction in
                for entry in entries { try RawEnvironment.put(transaction, table, entry.key, entry.value) }
            }
            let reader = try raw.begin(UInt32(MDB_RDONLY))
            mdb_txn_reset(reader)
            defer { mdb_txn_abort(reader) }
            let times = try await Measurement.times(
                rounds: rounds * 5,
                [
                    { try Measurement.time { keep(try cache.read(input.operation)) } },
                    {
                        try Measurement.time {
                            try RawEnvironment.check(mdb_txn_renew(reader))
                            var bytes = 0
                            for entry in entries {
                                bytes += entry.key.withUnsafeBytes { RawEnvironment.get(reader, table, $0) }
                            }
                            mdb_txn_reset(reader)
                            keep(bytes)
                        }
                    },
                ])
            return [
                BenchRow(
                    name: "read", what: "the whole query from the cache to a Response", times,
                    floorName: "mdb_get of \(entries.count) string keys", reach: .ratio(1.5),
                    note: "Response of \(response.byteCount) bytes")
            ]
        }
    }

    /// What it costs to say how old an answer is, and to keep what was used.
    func readKeepingUse() async throws -> [BenchRow] {
        try await withInputCache { cache in
            try await withInputCache(keepsUse: false) { bare in
                let times = try await Measurement.times(
                    rounds: rounds * 5,
                    [
                        { try Measurement.time { keep(try cache.read(input.operation)) } },
                        { try Measurement.time { keep(try bare.read(input.operation)) } },
                    ])
                return [
                    BenchRow(
                        name: "read-kept", what: "the whole query, with ages and use kept", times,
                        floorName: "the same without", reach: .ratio(1.05))
                ]
            }
        }
    }

    /// The objects of a response under keys that are their paths, each with as many bytes as its scalars have in JSON.
    private func collect(_ value: ResponseValue, at path: String, _ entries: inout [(key: [UInt8], value: [UInt8])]) {
        switch value.kind {
        case .object:
            var bytes: [UInt8] = []
            for name in value.names {
                guard let field = value[name] else { continue }
                switch field.kind {
                case .object, .list: collect(field, at: "\(path).\(name)", &entries)
                default: bytes += field.json
                }
            }
            entries.append((Array(path.utf8), bytes))
        case .list:
            for (index, element) in value.elements.enumerated() { collect(element, at: "\(path).\(index)", &entries) }
        default: break
        }
    }

    func visit() async throws -> [BenchRow] {
        try await withInputCache { cache in
            let response = try cache.read(input.operation).response
            let bytes = response.json
            let times = try await Measurement.times(
                rounds: rounds * 5,
                [
                    { Measurement.time { keep(response.data.map(touch)) } },
                    { Measurement.time { keep(bytes.reduce(0 as UInt64) { $0 &+ UInt64($1) }) } },
                ])
            return [
                BenchRow(
                    name: "visit", what: "every field of that Response touched", times,
                    floorName: "one pass over its JSON")
            ]
        }
    }

    func readAndVisit() async throws -> [BenchRow] {
        try await withInputCache { cache in
            let response = try cache.read(input.operation).response
            guard response.isComplete else { throw BenchFailure("the cache does not answer what was written") }
            let bytes = response.json
            let times = try await Measurement.times(
                rounds: rounds * 3,
                [
                    { try Measurement.time { keep(try cache.read(input.operation).response.data.map(touch)) } },
                    { Measurement.time { keep(bytes.reduce(0 as UInt64) { $0 &+ UInt64($1) }) } },
                ])
            return [
                BenchRow(
                    name: "read-visit", what: "the whole query read, and every field of the Response touched", times,
                    floorName: "one pass over its JSON", reach: .ratio(8))
            ]
        }
    }

    func decode() async throws -> [BenchRow] {
        try await withInputCache { cache in
            let response = try cache.read(input.operation).response
            return [
                input.isGitHub
                    ? try await decode(response, GitHubIssues.self, "structs")
                    : try await decode(response, AnyTree.self, "a tree")
            ]
        }
    }

    private func decode<T: Decodable>(_ response: Response, _ type: T.Type, _ noun: String) async throws -> BenchRow {
        let json = Data(response.json)
        let times = try await Measurement.times(
            rounds: rounds,
            [
                { try Measurement.time { keep(try response.decode(type)) } },
                { try Measurement.time { keep(try JSONDecoder().decode(type, from: json)) } },
            ])
        return BenchRow(
            name: "decode", what: "Response to \(noun)", times,
            floorName: "JSONDecoder on the same JSON", reach: input.isGitHub ? .ratio(0.4) : nil,
            note: input.isGitHub ? nil : "a tree is found by trial, so that errors are timed")
    }

    func allocations() async throws -> [BenchRow] {
        var rows: [BenchRow] = []
        try await withInputCache { cache in
            keep(try cache.read(input.operation))
            if let count = try Allocations.count({ keep(try cache.read(input.operation)) }) {
                rows.append(
                    BenchRow(
                        name: "allocations", what: "one warmed read of the whole query", unit: .allocations,
                        value: Double(count)))
            }
        }
        try await withItems(ItemShop.pageSize) { shop, cache in
            keep(try cache.read(shop.fragment, from: .object(key: ItemShop.key(1))))
            if let count = try Allocations.count({
                keep(try cache.read(shop.fragment, from: .object(key: ItemShop.key(77))))
            }) {
                rows.append(
                    BenchRow(
                        name: "allocations", what: "one warmed read-one", unit: .allocations, value: Double(count)))
            }
        }
        return rows
    }
}

private func touch(_ value: ResponseValue) -> Int {
    switch value.kind {
    case .object: value.names.reduce(0) { $0 + (value[$1].map(touch) ?? 0) }
    case .list: (0..<value.count).reduce(0) { $0 + (value[$1].map(touch) ?? 0) }
    case .string: value.string?.utf8.count ?? 0
    case .int: Int(truncatingIfNeeded: value.int ?? 0)
    case .float: value.double == 0 ? 0 : 1
    case .boolean: value.boolean == true ? 1 : 0
    case .number, .json, .null: 1
    }
}
