import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords

struct Info: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Tells how much the store holds and what it takes.",
        discussion: """
            With --types it counts what each type takes, with --ages how old the objects are; both read the whole \
            cache. gc tells what would go.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @Flag(help: "Count objects and bytes by type.")
    var types = false
    @Flag(help: "Count objects and bytes by age, and tell which gc --max-age would let go of.")
    var ages = false

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let (statistics, counts, oldest) = try await folder.withCache(.reading, output) { cache in
            (
                try cache.inspect.statistics(), types ? try cache.inspect.types() : nil,
                ages ? try cache.inspect.ages() : nil
            )
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
        if let oldest { members.append(("ages", .array(oldest.map(\.json)))) }
        try output.result(.object(members), text: Self.text(folder, statistics, pins, counts, oldest))
    }

    private static func text(
        _ folder: StoreFolder, _ statistics: CacheStatistics, _ pins: [StoredPin],
        _ counts: [CacheStatistics.TypeCount]?, _ ages: [CacheStatistics.AgeCount]?
    ) -> String {
        var lines = [
            "store       \(folder.url.path)",
            "partition   \(folder.partition), generation \(statistics.generation)",
            "size        \(statistics.fileSize.counted("byte")), pages of \(statistics.pageSize), "
                + "\(statistics.otherPages) of them free or LMDB's own",
            "records     \(statistics.entries(of: "records"))",
            "changes     \(statistics.position.number), of which the log holds those from \(statistics.firstChange)",
        ]
        for table in statistics.tables {
            let entries = table.entries.counted("entry", "entries")
            lines.append("table       \(table.name): \(entries) on \(table.pages.counted("page"))")
        }
        for pin in pins { lines.append("pin         \(pin.name): \(pin.operationName ?? pin.document)") }
        for count in counts ?? [] {
            lines.append(
                "type        \(count.type): \(count.entities.counted("object")), \(count.parts.counted("part")), "
                    + "\(count.tombstones.counted("tombstone")), \(count.bytes.counted("byte"))")
        }
        for (index, age) in (ages ?? []).enumerated() {
            let older = ages?[index...].dropFirst().reduce(0) { $0 + $1.objects } ?? 0
            let name = age.within.map { "less than \($0) s old" } ?? "older, or of unknown age"
            lines.append("age         \(name): \(age.objects.counted("object")), \(age.bytes.counted("byte"))")
            if let within = age.within, older > 0 {
                lines.append(
                    "            gc --max-age \(within) would let go of \(older.counted("object")), but of what is "
                        + "needed")
            }
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

extension CacheStatistics.AgeCount {
    fileprivate var json: JSONText {
        .object([
            ("within", within.map(JSONText.int) ?? .null), ("objects", .int(objects)), ("bytes", .int(bytes)),
        ])
    }
}
