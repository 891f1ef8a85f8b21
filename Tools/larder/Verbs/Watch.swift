import ArgumentParser
import Larder
import LarderCommandLine

struct Watch: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Prints an answer, or the state of an object, whenever anything changes it.",
        discussion: """
            Give --operation for a query; a cache key for an object: whether it is there, and which of its fields \
            changed; a key and --fragment for an object's fields. Prints one line for each state, the first at once, \
            until it is interrupted or has printed --count lines. Changes by all processes are seen, a tenth of a \
            second after they were made; states that follow each other faster may be left out, the last never is.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @ArgumentParser.Argument(help: ArgumentHelp("The cache key of an object.", valueName: "key"))
    var key: String?
    @Option(help: ArgumentHelp("A GraphQL document with the query to watch.", valueName: "file"))
    var operation: String?
    @Option(help: ArgumentHelp("A GraphQL document with the fragment to watch.", valueName: "file"))
    var fragment: String?
    @OptionGroup var document: DocumentOptions
    @Option(help: ArgumentHelp("End after so many lines.", valueName: "n"))
    var count: Int?

    func validate() throws {
        guard (key != nil) != (operation != nil) else { throw ValidationError("Name either a key or --operation.") }
        guard fragment == nil || key != nil else { throw ValidationError("--fragment goes with a key.") }
        guard key?.isEmpty != true else { throw ValidationError("The key is empty.") }
        guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
    }

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let variables = try document.values()
        if let operation {
            let text = try InputFile(role: "the operation", path: operation).text()
            let operation = GraphQLOperation(text, name: document.name, variables: variables)
            try await watch(folder, try schema.texts(), output, Self.printer(output)) { try $0.watch(operation) }
        } else if let key, let fragment {
            let text = try InputFile(role: "the fragment", path: fragment).text()
            let fragment = GraphQLFragment(text, name: document.name, variables: variables)
            try await watch(folder, try schema.texts(), output, Self.printer(output)) {
                try $0.watch(CacheKey(key), fragment)
            }
        } else if let key {
            // Whether an object is there has nothing to do with the schema.
            try await watch(folder, ["type Query { nothing: Int }"], output, Self.objectPrinter(output)) {
                $0.watch(CacheKey(key))
            }
        }
    }

    private func watch<States: AsyncSequence & Sendable>(
        _ folder: StoreFolder, _ schema: [String], _ output: Output,
        _ tell: @escaping @Sendable (States.Element) throws -> Void, _ states: (Partition) throws -> States
    ) async throws where States.Failure == Never {
        let interruption = Interruption()
        try await folder.withPartition(.reading, schema: schema, output) { partition in
            let cache = partition.records
            // Notes where the cache is, so that nothing between the first answer and the first look is missed.
            try await cache.noticeOtherProcesses()
            let states = try states(partition)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { [count] in
                    var told = 0
                    for await state in states {
                        try tell(state)
                        told += 1
                        if told == count { return }
                    }
                }
                group.addTask {
                    while !Task.isCancelled {
                        let count = partition.changeCount
                        try await cache.noticeOtherProcesses()
                        try? await Task.sleep(for: .milliseconds(100))
                        await partition.change(past: count)
                    }
                }
                group.addTask { await interruption.wait() }
                defer { group.cancelAll() }
                try await group.next()
            }
        }
    }

    private static func printer(_ output: Output) -> @Sendable (WatchState) throws -> Void {
        { state in
            // A cache that cannot be read any more will not be read the next time either.
            if let error = state.error { throw error }
            if let response = state.response { output.noteMissing(response) }
            if state.isDeleted { output.note("the object is known to be no more") }
            let data: JSONText = state.response.map { .raw($0.json) } ?? .null
            let missing = state.response?.missing ?? []
            try output.result(
                .object([
                    ("data", data), ("isComplete", .boolean(state.complete != nil)),
                    ("missing", .array(missing.map(JSONText.init))), ("isDeleted", .boolean(state.isDeleted)),
                ]),
                response: .object([("data", data)]))
        }
    }

    private static func objectPrinter(_ output: Output) -> @Sendable (ObjectState) throws -> Void {
        { state in
            let fields = state.changedFields.map(\.text).joined(separator: " ")
            try output.result(
                .object([
                    ("key", .string(state.key.text)), ("presence", .string(state.presence.rawValue)),
                    ("changedFields", .strings(state.changedFields.map(\.text))),
                ]),
                text: Output.oneLine("\(state.key) \(state.presence.rawValue)" + (fields.isEmpty ? "" : " \(fields)")))
        }
    }
}
