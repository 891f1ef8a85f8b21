import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderHTTP

struct PagesVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "pages",
        abstract: "Loads the pages of a list, one after the other, and stores them.",
        discussion: """
            The schema says with @fieldPolicy(forField:, paginationArgs:) which arguments choose a page; they are \
            variables of the operation. Without --all and --at-least it loads one page more than the store has. It \
            goes on where it was left, and says on standard error how far it is.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @OptionGroup var request: RequestOptions
    @Flag(help: "Load the list to its end.")
    var all = false
    @Option(
        name: .customLong("at-least"),
        help: ArgumentHelp("Load pages until there are so many objects, or the list ends.", valueName: "n"))
    var atLeast: Int?
    @Flag(name: .customLong("start-over"), help: "With --all, ask for the pages that the store has too.")
    var startOver = false

    func validate() throws {
        guard !all || atLeast == nil else { throw ValidationError("Give either --all or --at-least.") }
        guard !startOver || all else { throw ValidationError("--start-over goes with --all.") }
        guard atLeast ?? 1 > 0 else { throw ValidationError("--at-least must be at least 1.") }
    }

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        let options = try request.fetchOptions()
        let status = try await request.server.withTransport { transport in
            try await folder.withPartition(
                .writing, schema: schema, asking: (operation, .query), transport: transport, output
            ) { partition in
                let pages = try partition.pages(operation, options: options)
                let progress: @Sendable (PagesStatus) -> Void = { output.note($0.text) }
                if all { return try await pages.all(startingOver: startOver, progress: progress) }
                if let atLeast { return try await pages.atLeast(atLeast, progress: progress) }
                _ = pages.goesBackward ? try await pages.previous() : try await pages.next()
                return try await pages.status()
            }
        }
        try output.result(
            .object([
                ("pages", .int(status.pageCount)), ("objects", .int(status.objectCount)),
                ("isComplete", .boolean(status.isComplete)),
            ]), text: status.text)
    }
}

extension PagesStatus {
    fileprivate var text: String {
        "\(pageCount.counted("page")), \(objectCount.counted("object"))"
            + (isComplete ? ", the whole list" : "")
    }
}
