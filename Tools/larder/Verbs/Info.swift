import ArgumentParser
import Larder
import LarderCommandLine
import LarderOperations
import LarderRecords

struct Info: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Tells how much the store holds and what it takes.",
        discussion: "With --types it counts what each type takes, which reads the whole store.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @Flag(help: "Count objects and bytes by type.")
    var types = false

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let (statistics, counts) = try await folder.withCache(.reading, output) { cache in
            (try cache.inspect.statistics(), types ? try cache.inspect.types() : nil)
        }
        var members: [(name: String, value: JSONText)] = [
            ("store", .string(folder.url.path)), ("partition", .string(folder.partition)),
            ("generation", .int(statistics.generation)), ("bytes", .int(Int(clamping: statistics.fileSize))),
            ("pageSize", .int(statistics.pageSize)), ("freePages", .int(statistics.otherPages)),
            ("records", .int(statistics.entries(of: "records"))),
            (
                "changes",
                .object([
                    // Of 64 bits, more than many readers of JSON keep in a number.
                    ("epoch", .string(String(statistics.position.epoch, radix: 16))),
                    ("last", .int(Int(clamping: statistics.position.number))),
                    ("first", .int(Int(clamping: statistics.firstChange))),
                ])
            ),
            ("tables", .array(statistics.tables.map(\.json))),
        ]
        var (pins, unread) = ([StoredPin](), folder.unread)
        do {
            pins = try await folder.withOperations(.reading, output) { try $0.pins.list(in: folder.partition) } ?? []
        } catch let error as OperationsError {
            // The cache may be told of all the same.
            if unread == nil { output.warn(Failure(error)) }
            unread = error
        }
        members.append(("pins", .array(pins.map(\.json))))
        let exposure = StoreExposure(of: folder.url, folder.files)
        members.append(exposure.member)
        members.append(("unread", .array(unread.map { [$0.json] } ?? [])))
        output.noteFinding(exposure)
        if let counts { members.append(("types", .array(counts.map(\.json)))) }
        try output.result(.object(members), text: Self.text(folder, statistics, pins, counts))
    }

    private static func text(
        _ folder: StoreFolder, _ statistics: CacheStatistics, _ pins: [StoredPin],
        _ counts: [CacheStatistics.TypeCount]?
    ) -> String {
        var lines = [
            "store       \(folder.url.path)",
            "partition   \(folder.partition), generation \(statistics.generation)",
            "size        \(statistics.fileSize) bytes, pages of \(statistics.pageSize), "
                + "\(statistics.otherPages) of them free or LMDB's own",
            "records     \(statistics.entries(of: "records"))",
            "changes     \(statistics.position.number), of which the log holds those from \(statistics.firstChange)",
        ]
        for table in statistics.tables {
            lines.append("table       \(table.name): \(table.entries) entries on \(table.pages) pages")
        }
        for pin in pins { lines.append("pin         \(pin.name): \(pin.operationName ?? pin.document)") }
        for count in counts ?? [] {
            lines.append(
                "type        \(count.type): \(count.entities) objects, \(count.parts) parts, "
                    + "\(count.tombstones) tombstones, \(count.bytes) bytes")
        }
        return lines.map(Output.oneLine).joined(separator: "\n")
    }
}

extension OperationsError {
    fileprivate var json: JSONText {
        .object([
            ("file", .string(OperationsDatabase.fileName)), ("code", .string(code.rawValue)),
            ("message", .string(message)),
        ])
    }
}

extension CacheStatistics.Table {
    fileprivate var pages: Int { branchPages + leafPages + overflowPages }

    fileprivate var json: JSONText {
        .object([("name", .string(name)), ("entries", .int(entries)), ("pages", .int(pages)), ("depth", .int(depth))])
    }
}

extension StoredPin {
    fileprivate var json: JSONText {
        .object([
            ("name", .string(name)), ("document", .string(document)),
            ("operation", operationName.map(JSONText.string) ?? .null), ("variables", .raw(variables)),
        ])
    }
}

extension CacheStatistics.TypeCount {
    fileprivate var json: JSONText {
        .object([
            ("type", .string(type)), ("objects", .int(entities)), ("parts", .int(parts)),
            ("tombstones", .int(tombstones)), ("bytes", .int(bytes)),
        ])
    }
}
