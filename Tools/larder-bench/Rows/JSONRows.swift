import Foundation
import GRDB
import LarderRecords

extension Bench {
    /// Beside ours: each record as JSON text in one row of one SQLite table.
    func jsonRows() async throws -> [BenchRow] {
        let root = try JSONSerialization.jsonObject(with: Data(input.body)) as? [String: Any]
        guard let data = root?["data"] as? [String: Any] else { throw BenchFailure("the response has no data") }
        var store = JSONRecordStore()
        store.add(data, key: "QUERY_ROOT")
        let records = store.records
        let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
        return try await withInputCache { cache in
            let path = freshPath("sqlite")
            defer { remove(path) }
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            let filled = try JSONRecordStore.makeDatabase("\(path)/filled.sqlite")
            try JSONRecordStore.commit(records, filled)
            let commits = try await Measurement.times(
                rounds: rounds,
                [
                    {
                        let path = freshPath("commit")
                        defer { remove(path) }
                        let cache = try RecordCache(folder: path, stamp: "bench")
                        defer { try? cache.close() }
                        return try await Measurement.time { keep(try await cache.write(parsed, of: input.operation)) }
                    },
                    {
                        let path = freshPath("sqlite")
                        defer { remove(path) }
                        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                        let database = try JSONRecordStore.makeDatabase("\(path)/rows.sqlite")
                        return try Measurement.time { try JSONRecordStore.commit(records, database) }
                    },
                ])
            let reads = try await Measurement.times(
                rounds: rounds,
                [
                    { try Measurement.time { keep(try cache.read(input.operation)) } },
                    { try Measurement.time { keep(try JSONRecordStore.read(filled)) } },
                ])
            return [
                BenchRow(
                    name: "json-rows", what: "commit, ours beside theirs", commits,
                    floorName: "JSON text in SQLite rows", note: "\(records.count) rows"),
                BenchRow(
                    name: "json-rows", what: "read of the whole query, ours beside theirs", reads,
                    floorName: "JSON text in SQLite rows"),
            ]
        }
    }
}

/// The design of other caches: records as dictionaries, their JSON in a table, references by key.
struct JSONRecordStore {
    private(set) var records: [String: [String: Any]] = [:]

    mutating func add(_ object: [String: Any], key: String) {
        var record: [String: Any] = [:]
        for (name, value) in object { record[name] = stored(value, path: "\(key).\(name)") }
        records[key, default: [:]].merge(record) { _, new in new }
    }

    private mutating func stored(_ value: Any, path: String) -> Any {
        if let object = value as? [String: Any] {
            var key = path
            if let type = object["__typename"] as? String, let id = object["id"] as? String { key = "\(type):\(id)" }
            add(object, key: key)
            return ["$reference": key]
        }
        guard let list = value as? [Any] else { return value }
        return list.enumerated().map { stored($0.element, path: "\(path).\($0.offset)") }
    }

    static func makeDatabase(_ path: String) throws -> DatabasePool {
        let pool = try DatabasePool(path: path)
        try pool.write { database in
            try database.execute(sql: "CREATE TABLE records (key TEXT PRIMARY KEY NOT NULL, record TEXT NOT NULL)")
        }
        return pool
    }

    static func commit(_ records: [String: [String: Any]], _ database: DatabasePool) throws {
        try database.writeWithoutTransaction { database in
            try database.inTransaction {
                let statement = try database.cachedStatement(
                    sql: "INSERT OR REPLACE INTO records (key, record) VALUES (?, ?)")
                for (key, record) in records {
                    let text = String(decoding: try JSONSerialization.data(withJSONObject: record), as: UTF8.self)
                    try statement.execute(arguments: [key, text])
                }
                return .commit
            }
        }
    }

    /// The whole answer, record by record.
    static func read(_ database: DatabasePool) throws -> Int {
        try database.read { database in
            let statement = try database.cachedStatement(sql: "SELECT record FROM records WHERE key = ?")
            func object(_ key: String) throws -> [String: Any] {
                guard let text = try String.fetchOne(statement, arguments: [key]),
                    let record = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
                else { throw BenchFailure("\(key) is missing") }
                return try record.mapValues(resolved)
            }
            func resolved(_ value: Any) throws -> Any {
                if let reference = value as? [String: Any], let key = reference["$reference"] as? String {
                    return try object(key)
                }
                guard let list = value as? [Any] else { return value }
                return try list.map(resolved)
            }
            return try object("QUERY_ROOT").count
        }
    }
}
