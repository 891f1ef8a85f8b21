import Foundation
import Larder
import LarderRecords
import LarderTestSupport

/// Large things, each done in a process of its own, whose greatest use of memory tells what it took.
enum Load: String {
    /// A list of 100,000 objects.
    case objects
    /// Half a million objects of one number each, without identity: 4 MiB.
    case parts
    /// A list of four million numbers: 8 MiB.
    case numbers
    /// 100,000 fields of the root, one for each argument.
    case fields
    /// One field 5,000 times, under as many names.
    case aliases
    /// An operation of a megabyte.
    case document
    /// A sparse file of 6 GiB that is uploaded.
    case upload
    /// An object of 6 GiB that is downloaded.
    case download

    private static let largeSize: Int64 = 6 << 30

    func run(_ folder: URL) async throws {
        let schema = try Schema(
            parsing: """
                type Book { id: ID! title: String! }
                type Part { a: Int! }
                type Query { books: [Book!]! book(id: ID!): Book parts: [Part!]! numbers: [Int!]! }
                """)
        let store = try Store.open(at: folder, schema: schema)
        let app = try store.partition()
        let before = try peak()
        switch self {
        case .objects:
            let elements = (0..<100_000).map { #"{"id":"\#($0)","title":"t\#($0)"}"# }
            let operation = GraphQLOperation("{ books { id title } }")
            try await app.write(operation, json: Array(#"{"books":[\#(elements.joined(separator: ","))]}"#.utf8))
            say("elements \(try app.read(operation)["books"]?.count ?? 0)")
        case .parts: try await list("parts { a }", "parts", of: #"{"a":1}"#, bytes: 4 << 20, app)
        case .numbers: try await list("numbers", "numbers", of: "1", bytes: 8 << 20, app)
        case .fields:
            for start in stride(from: 0, to: 100_000, by: 5_000) {
                let numbers = start..<(start + 5_000)
                let operation = GraphQLOperation(
                    "{" + numbers.map { #"b\#($0):book(id:"\#($0)"){id title}"# }.joined() + "}")
                let members = numbers.map { #""b\#($0)":{"id":"\#($0)","title":"t"}"# }
                try await app.write(operation, json: Array("{\(members.joined(separator: ","))}".utf8))
            }
            let one = GraphQLOperation(#"{ book(id: "77777") { id title } }"#)
            say("title \(try app.read(one)["book"]?["title"]?.string ?? "?")")
            // What a change of one field among them costs does not depend on how many there are.
            let fileBefore = try pages(app)
            for round in 0..<20 {
                try await app.write(one, json: Array(#"{"book":{"id":"x\#(round)","title":"u"}}"#.utf8))
            }
            say("pages \(try pages(app) - fileBefore)")
        case .aliases:
            let names = (0..<5_000).map { "a\($0)" }
            let operation = GraphQLOperation(
                "{" + names.map { #"\#($0):book(id:"1"){id title}"# }.joined(separator: " ") + "}")
            let data = "{" + names.map { #""\#($0)":{"id":"1","title":"t"}"# }.joined(separator: ",") + "}"
            try await app.write(operation, json: Array(data.utf8))
            let answer = try app.read(operation)
            say("same \(String(decoding: answer.json, as: UTF8.self) == data)")
            try await app.update(operation) { _ in }
        case .document:
            let text = "{" + String(repeating: "books { id title } ", count: (1 << 20) / 19) + "}"
            let operation = GraphQLOperation(text)
            do {
                try await app.write(operation, json: Array(#"{"books":[{"id":"1","title":"t"}]}"#.utf8))
                say("elements \(try app.read(operation)["books"]?.count ?? 0)")
            } catch {
                say("refused \(error.code.rawValue)")
            }
        case .upload: try await upload(app, folder)
        case .download: try await download(app, folder)
        }
        say("peak \((try peak() - before) >> 20)")
        say(try app.records.check().isSound ? "sound" : "unsound")
        try store.close()
    }

    /// Writes and reads one list, of which the JSON has so many bytes.
    private func list(
        _ selection: String, _ field: String, of element: String, bytes: Int, _ app: Partition
    ) async throws {
        var json = Array("{\"\(field)\":[\(element)".utf8)
        json.reserveCapacity(bytes + 64)
        while json.count < bytes { json.append(contentsOf: ",\(element)".utf8) }
        json.append(contentsOf: "]}".utf8)
        let operation = GraphQLOperation("{ \(selection) }")
        try await app.write(operation, json: json)
        say("elements \(try app.read(operation)[field]?.count ?? 0)")
    }

    private func upload(_ app: Partition, _ folder: URL) async throws {
        let file = folder.appending(path: "large")
        try Data().write(to: file)
        let handle = try FileHandle(forWritingTo: file)
        try handle.truncate(atOffset: UInt64(Self.largeSize))
        for number in 0..<Self.largeSize / HollowStorage.mebibyte {
            try handle.seek(toOffset: UInt64(number * HollowStorage.mebibyte + 1000))
            try handle.write(contentsOf: withUnsafeBytes(of: number.littleEndian) { Data($0) })
        }
        try handle.close()
        let storage = HollowStorage(size: Self.largeSize)
        let upload = try await app.transfers.upload(file, to: .init(bucket: "media", key: "large"))
        try await TransferRunner(app, storage: storage).drain()
        say("moved \(try await upload.finished().arrived)")
        say("same \(storage.checksum == HollowStorage.checksum(size: Self.largeSize))")
    }

    private func download(_ app: Partition, _ folder: URL) async throws {
        let file = folder.appending(path: "large")
        let download = try await app.transfers.download(.init(bucket: "media", key: "large"), to: file)
        try await TransferRunner(app, storage: HollowStorage(size: Self.largeSize)).drain()
        say("moved \(try await download.finished().arrived)")
        let handle = try FileHandle(forReadingFrom: file)
        var crc = CRC32C()
        while let bytes = try handle.read(upToCount: 1 << 20), !bytes.isEmpty {
            bytes.withUnsafeBytes { crc.update($0) }
        }
        try handle.close()
        say("same \(crc.value == HollowStorage.checksum(size: Self.largeSize))")
    }

    /// The pages that the store has, used or free.
    private func pages(_ app: Partition) throws -> Int { Int(try app.records.check().counts.pages) }

    private struct UnknownMemory: Error {}

    /// The most memory that this process has had, in bytes.
    private func peak() throws -> Int {
        #if os(Linux)
        // What `getrusage` says may be that of the process it was forked from.
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        guard let kibibytes = status.firstMatch(of: /VmHWM:\s+([0-9]+) kB/).flatMap({ Int($0.1) }) else {
            throw UnknownMemory()
        }
        return kibibytes << 10
        #else
        var usage = rusage()
        guard getrusage(RUSAGE_SELF, &usage) == 0 else { throw UnknownMemory() }
        return usage.ru_maxrss
        #endif
    }
}
