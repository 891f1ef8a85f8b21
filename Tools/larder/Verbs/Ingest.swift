import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles

struct Ingest: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Stores a server's response to an operation.",
        discussion: """
            The response is a whole one, with "data" and whatever is beside it. Fields that have an error keep what \
            the store knew of them. The store is made if there is none.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @Option(help: ArgumentHelp("The response, in JSON; - for standard input.", valueName: "file"))
    var response: String

    func perform(_ output: Output) async throws {
        guard response != "-" || operation.document.variables != "-" else {
            throw Failure(usage: "Only one of --response and --variables can be on standard input")
        }
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        let bytes = try InputFile(role: "the response", path: response).bytes()
        let before = try folder.byteCount
        let (taken, tally) = try await folder.withPartition(
            .writing, schema: schema, asking: (operation, nil), output
        ) { partition in
            let written = WrittenRecords(in: partition.records)
            let taken = try await partition.take(bytes, of: operation)
            return (taken, try written.tally(partition.records))
        }
        for error in taken.errors { output.note("the server reported: \(error)") }
        guard taken.hasData else {
            throw LarderError(.serverErrors, "The response holds no data, and nothing was stored", errors: taken.errors)
        }
        let result = Written(records: tally, bytesBefore: before, bytesAfter: try folder.byteCount)
        try output.result(
            .object([
                ("responseBytes", .int(bytes.count)), ("objects", .int(taken.objectCount)), ("written", result.json),
                ("errors", .array(taken.errors.map(JSONText.init))),
            ]),
            text: "took \(bytes.count.counted("byte")) with \(taken.objectCount.counted("object")): \(result.text)")
    }
}
