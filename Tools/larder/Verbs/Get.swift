import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Get: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Shows what the store holds of one object.",
        discussion: """
            Fields are shown under the keys by which they are stored, with their arguments, and their values as JSON. \
            {"$ref": key} is another object, {"$part": path} one without identity, which get takes like a key. The \
            exit status is 3 if the store does not hold the object, or knows that it is no more.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @ArgumentParser.Argument(
        help: ArgumentHelp(
            "The object's cache key, such as Movie:12345, or the path of a part.", valueName: "key"))
    var key: String

    func perform(_ output: Output) async throws {
        let record = try await store.folder(partition).withCache(.reading, output) { try $0.inspect.record(key: key) }
        guard let record else {
            throw Failure(.unknownObject, .miss, "The store does not hold \(key)", details: Self.details(key, "absent"))
        }
        guard record.kind != .tombstone else {
            throw Failure(
                .unknownObject, .miss, "\(key) is known to be no more", details: Self.details(key, "deleted"))
        }
        let fields = record.fields.map { (name: $0.name, value: JSONText.raw($0.value.json)) }
        try output.result(
            .object([
                ("key", .string(record.key)), ("type", .string(record.type)),
                ("isPart", .boolean(record.kind == .part)), ("bytes", .int(record.byteCount)),
                ("fields", .object(fields)),
            ]),
            text: Self.text(record))
    }

    private static func details(_ key: String, _ presence: String) -> [(name: String, value: JSONText)] {
        [("key", .string(key)), ("presence", .string(presence))]
    }

    private static func text(_ record: StoredRecord) -> String {
        let heading = "\(record.key) \(record.type) \(record.byteCount) bytes"
        let lines = record.fields.map { "  \($0.name): \(String(decoding: $0.value.json, as: UTF8.self))" }
        return ([heading] + lines).map(Output.oneLine).joined(separator: "\n")
    }
}
