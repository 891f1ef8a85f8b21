import ArgumentParser
import Larder
import LarderCommandLine

struct GarbageVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "gc",
        abstract: "Tells how much the cache holds that nothing needs; removes it with --write.",
        discussion: """
            An object is needed if a field of the root of all queries leads to it, a pin, a watcher that outlives its \
            program, or a queued mutation. Programs that have the store open go on; what one watches without a name \
            is not known here. The file keeps its size until it is compacted. The garbage of transfers is that of \
            transfers gc.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var permission: WritePermission

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let isWritten = permission.write
        let report = try await folder.withPartition(
            isWritten ? .writing : .reading, schema: try schema.texts(), output
        ) { try await $0.collectGarbage(isRehearsal: !isWritten) }
        try output.result(
            .object([
                ("isWritten", .boolean(isWritten)), ("objects", .int(report.objects)), ("parts", .int(report.parts)),
                ("keys", .int(report.keys)), ("bytes", .int(report.bytes)), ("kept", .int(report.kept)),
            ]),
            text: "\(isWritten ? "removed" : "garbage:") \(report.objects) objects, \(report.parts) parts, "
                + "\(report.keys) keys, \(report.bytes) bytes; \(report.kept) records stay")
        if !isWritten, report.objects + report.keys > 0 { output.note("nothing was removed; --write does it") }
    }
}
