import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Ls: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the cache keys of the objects in the store.",
        discussion: """
            One key a line, in ascending order of bytes; keys of more than 504 bytes that share their first 440 are in \
            the order of their SHA-256. QUERY_ROOT is the root of all queries. Objects that are known to be no more \
            are listed with --deleted only.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @Option(help: ArgumentHelp("Only objects of this type.", valueName: "type"))
    var type: String?
    @Option(help: ArgumentHelp("Only keys that begin so.", valueName: "text"))
    var prefix = ""
    @OptionGroup var limit: LimitOptions
    @Flag(help: "Also objects that are known to be no more.")
    var deleted = false

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let keys = try await folder.withCache(.reading, output) { cache in
            try cache.inspect.keys(type: type, prefix: prefix, limit: limit.sought, includingTombstones: deleted)
        }
        try limit.show(keys, as: "keys", output, json: JSONText.string, cells: { [TableCell($0)] })
    }
}
