import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Ls: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the cache keys of the objects in the store.",
        discussion: """
            One key a line, in ascending order of bytes. QUERY_ROOT is the root of all queries. Objects that are known \
            to be no more are listed with --deleted only.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @Option(help: ArgumentHelp("Only objects of this type.", valueName: "type"))
    var type: String?
    @Option(help: ArgumentHelp("Only keys that begin so.", valueName: "text"))
    var prefix = ""
    @Option(help: ArgumentHelp("At most as many.", valueName: "n"))
    var limit: Int?
    @Flag(help: "Also objects that are known to be no more.")
    var deleted = false

    func validate() throws {
        guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
    }

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let limit = min(limit ?? .max, .max - 1)
        var keys = try await folder.withCache(.reading, output) { cache in
            // One more than wanted tells whether there are more.
            try cache.inspect.keys(type: type, prefix: prefix, limit: limit + 1, includingTombstones: deleted)
        }
        let hasMore = keys.count > limit
        if hasMore { keys.removeLast() }
        if hasMore { output.note("there are more than \(limit)") }
        try output.result(
            .object([("keys", .strings(keys)), ("hasMore", .boolean(hasMore))]),
            text: keys.map(Output.oneLine).joined(separator: "\n"))
    }
}
