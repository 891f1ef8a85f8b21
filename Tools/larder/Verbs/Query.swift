import ArgumentParser
import Larder
import LarderCommandLine

struct Query: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Answers an operation from the store alone.",
        discussion: """
            Prints {"data": …}. If the store does not know all of it, nothing is printed, the missing paths are \
            named on standard error, and the exit status is 3; with --partial, what is known is printed and the \
            status is 0. So it is where an answer is older than it may be: than --max-age says or, without it, the \
            schema and the server; --stale prints it nevertheless.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @Flag(help: "Be content with an answer that lacks something.")
    var partial = false
    @OptionGroup var age: AgeOptions

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        let options = try age.applied(to: FetchOptions())
        let response = try await folder.withPartition(.reading, schema: schema, output) { partition in
            let response = try partition.read(operation, allowsPartial: partial)
            guard response.isComplete else { return response }
            return try await partition.fetch(operation, policy: .cacheOnly, options: options)
        }
        output.noteMissing(response)
        try output.result(response.result, response: response.envelope)
    }
}
