import ArgumentParser
import Larder
import LarderCommandLine

struct Send: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Sends a mutation now, past the queue, and stores what the server answers.",
        discussion: """
            Prints {"data": …} and says on standard error what was stored. Where it fails, nothing is kept: enqueue \
            keeps a mutation until it can be sent. The store is made if there is none.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @OptionGroup var request: RequestOptions

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        let (options, before) = (try request.fetchOptions(), try folder.byteCount)
        let (response, tally) = try await request.server.withTransport { transport in
            try await folder.withPartition(
                .writing, schema: schema, asking: (operation, .mutation), transport: transport, output
            ) { partition in
                let written = WrittenRecords(in: partition.records)
                let response = try await partition.send(operation, options: options)
                return (response, try written.tally(partition.records))
            }
        }
        let written = Written(records: tally, bytesBefore: before, bytesAfter: try folder.byteCount)
        output.note(written.text)
        try output.result(
            .object([("response", response.result), ("written", written.json)]), response: response.envelope)
    }
}

struct Enqueue: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Queues a mutation, which is sent by run, or by the store's program.",
        discussion: """
            Prints its id once it is on disk. mutations show tells what has become of it. The store is made if there \
            is none.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @Option(
        help: ArgumentHelp(
            "What the server is expected to answer, shown until it does: a JSON object, the data of the answer.",
            valueName: "file"))
    var optimistic: String?
    @Option(help: ArgumentHelp("Mutations of one lane are sent in their order.", valueName: "name"))
    var lane: String?

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        var options = MutationOptions(lane: lane.map { MutationLane($0) } ?? .main)
        if let optimistic {
            let file = InputFile(role: "the optimistic answer", path: optimistic)
            do { options.optimisticResponse = try Value(json: try file.bytes()) } catch let error as JSONError {
                throw file.unusable("\(error)")
            }
        }
        let id = try await folder.withPartition(
            .writing, schema: schema, asking: (operation, .mutation), output
        ) { partition in
            try await partition.enqueue(operation, options: options).id
        }
        try output.result(
            .object([("id", .string("\(id)")), ("lane", .string(lane ?? ""))]), text: "\(id)")
    }
}
