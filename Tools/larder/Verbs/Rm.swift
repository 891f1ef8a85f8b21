import ArgumentParser
import LarderCommandLine
import LarderGraphQL
import LarderRecords

struct Rm: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Removes objects or fields.",
        discussion: """
            Name objects by their cache keys, or all of a type by --type, or a field by --field: of the object of \
            --of, otherwise of the root of all queries. A field goes with whatever arguments it was fetched; a whole \
            field key, such as movies({"first":10}), names one set of them. What the store does not have is passed over.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var permission: WritePermission
    @ArgumentParser.Argument(help: ArgumentHelp("Cache keys of objects, such as Movie:12345.", valueName: "key"))
    var keys: [String] = []
    @Option(help: ArgumentHelp("Remove all objects of this type. Wants --write.", valueName: "type"))
    var type: String?
    @Option(help: ArgumentHelp("Remove this field.", valueName: "field"))
    var field: String?
    @Option(name: .customLong("of"), help: ArgumentHelp("Whose field.", valueName: "key"))
    var owner: String?
    @Option(
        name: .customLong("as"),
        help: ArgumentHelp(
            "evicted: asking for the object is a miss until it comes again. deleted: it is known to be no more, and "
                + "lists go without it.",
            valueName: "how"))
    var removal: Removal = .evicted

    func validate() throws {
        guard [!keys.isEmpty, type != nil, field != nil].count(where: { $0 }) == 1 else {
            throw ValidationError("Name either keys, or --type, or --field.")
        }
        guard owner == nil || field != nil else { throw ValidationError("--of goes with --field.") }
        guard field == nil || removal == .evicted else { throw ValidationError("A field can only be evicted.") }
        guard (keys + [type, field, owner].compactMap { $0 }).allSatisfy({ !$0.isEmpty }) else {
            throw ValidationError("A key, type or field has an empty name.")
        }
    }

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        if let type { try permission.require(for: "removing all objects of the type \(type)") }
        let before = try folder.byteCount
        let tally = try await folder.withCache(.writing, output) { cache in
            let written = WrittenRecords(in: cache)
            if let type {
                _ = try await cache.remove(type: type, as: removal.ofCache)
            } else if let field {
                _ = try await cache.remove(field: field, of: owner ?? CacheKey.queryRoot.text)
            } else {
                _ = try await cache.remove(keys: keys, as: removal.ofCache)
            }
            return try written.tally(cache)
        }
        let written = Written(records: tally, bytesBefore: before, bytesAfter: try folder.byteCount)
        try output.result(.object([("written", written.json)]), text: written.text)
    }
}

extension Rm {
    enum Removal: String, CaseIterable, ExpressibleByArgument {
        case evicted, deleted

        var ofCache: RecordCache.Removal {
            switch self {
            case .evicted: .evicted
            case .deleted: .deleted
            }
        }
    }
}
