import ArgumentParser
import Larder
import LarderCommandLine

struct PinVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Keeps the answer to an operation in the cache, under a name.",
        discussion: "The same name with another operation pins that instead. info lists the pins.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @ArgumentParser.Argument(help: ArgumentHelp("The pin's name.", valueName: "pin"))
    var pin: String

    func perform(_ output: Output) async throws {
        let (folder, operation) = (try store.folder(partition), try operation.value())
        try await folder.withPartition(
            .writing, schema: try schema.texts(), asking: (operation, .query), output
        ) { app in
            try await app.pin(named: pin, operation)
        }
        try output.result(
            .object([("name", .string(pin)), ("isPinned", .boolean(true))]), text: Output.oneLine("pinned \(pin)"))
    }
}

struct UnpinVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "unpin", abstract: "Lets go of what a name pins.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @ArgumentParser.Argument(help: ArgumentHelp("The pin's name.", valueName: "pin"))
    var pin: String

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let wasPinned =
            try await folder.withOperations(.writing, output) {
                try await $0.pins.remove(pin, in: folder.partition)
            } ?? false
        guard wasPinned else { throw Failure(.unknownPin, .miss, "Nothing is pinned under the name \(pin)") }
        try output.result(
            .object([("name", .string(pin)), ("isPinned", .boolean(false))]), text: Output.oneLine("unpinned \(pin)"))
    }
}
