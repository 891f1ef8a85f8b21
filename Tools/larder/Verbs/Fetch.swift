public import ArgumentParser
public import Larder
import LarderCommandLine
import LarderHTTP

struct Fetch: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Answers a query from where a policy says, and stores what a server answers.",
        discussion: """
            Prints {"data": …} and says on standard error what was stored. The store is made if there is none. \
            Headers are sent and never printed.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @OptionGroup var request: RequestOptions
    @Option(help: ArgumentHelp("Where the answer may come from.", valueName: "policy"))
    var policy: FetchPolicy = .cacheFirst
    @OptionGroup var age: AgeOptions

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        let options = try age.applied(to: request.fetchOptions())
        let before = try folder.byteCount
        let (response, tally) = try await request.server.withTransport { transport in
            try await folder.withPartition(
                .writing, schema: schema, asking: (operation, nil), transport: transport, output
            ) { partition in
                let written = WrittenRecords(in: partition.records)
                let response = try await partition.fetch(operation, policy: policy, options: options)
                return (response, try written.tally(partition.records))
            }
        }
        let written = Written(records: tally, bytesBefore: before, bytesAfter: try folder.byteCount)
        output.note(written.text)
        try output.result(
            .object([("response", response.result), ("written", written.json)]), response: response.envelope)
    }
}

extension FetchPolicy: ExpressibleByArgument {}
