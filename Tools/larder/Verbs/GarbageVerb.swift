import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderRecords

struct GarbageVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Tells how much the cache holds that nothing needs; removes it with --write.",
        discussion: """
            An object is needed if a field of the root of all queries leads to it, a pin, a watcher that outlives its \
            program, or a queued mutation. Programs that have the store open go on; what one watches without a name \
            is not known here. The file keeps its size until it is compacted. The garbage of transfers is that of \
            transfers gc. With --max-bytes or --max-age, what came longest ago goes first, pins and what else is needed \
            excepted.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var permission: WritePermission
    @Flag(name: .customLong("dry-run"), help: "Only count, as without --write.")
    var isDryRun = false
    @OptionGroup var bounds: BoundOptions

    func perform(_ output: Output) async throws {
        guard !(isDryRun && permission.write) else { throw Failure(usage: "Give either --write or --dry-run") }
        let bounds = try bounds.bounds()
        let folder = try store.folder(partition)
        let isWritten = permission.write
        let (evicted, report) = try await folder.withPartition(
            isWritten ? .writing : .reading, schema: try schema.texts(), output
        ) { partition in
            var evicted = try await partition.evict(
                maxBytes: bounds.maxBytes, maxAge: bounds.maxAge, isRehearsal: !isWritten)
            guard isWritten else { return (evicted, try await partition.collectGarbage(isRehearsal: true)) }
            var report = evicted.garbage
            report.add(try await partition.collectGarbage())
            evicted.bytesInUse = try partition.records.bytesInUse()
            return (evicted, report)
        }
        try output.result(
            .object([
                ("isWritten", .boolean(isWritten)), ("objects", .int(report.objects)), ("parts", .int(report.parts)),
                ("keys", .int(report.keys)), ("bytes", .int(report.bytes)), ("kept", .int(report.kept)),
                (
                    "evicted",
                    .object([
                        ("objects", .int(evicted.objects)), ("fields", .int(evicted.fields)),
                        ("bytes", .int(evicted.bytes)), ("bytesInUse", .int(evicted.bytesInUse)),
                    ])
                ),
            ]),
            text: "\(isWritten ? "removed" : "garbage:") \(report.objects.counted("object")), "
                + "\(report.parts.counted("part")), \(report.keys.counted("key")), \(report.bytes.counted("byte")); "
                + "kept: \(report.kept.counted("record"))")
        if bounds.isBounded {
            output.note(
                "\(isWritten ? "evicted" : "would be evicted:") \(evicted.objects.counted("object")) and "
                    + "\(evicted.fields.counted("field")) of the root, \(evicted.bytes.counted("byte")); "
                    + "in use: \(evicted.bytesInUse.counted("byte"))")
        }
        if !isWritten, report.objects + report.keys + evicted.objects + evicted.fields > 0 {
            output.note("nothing was removed; --write does it")
        }
    }
}
