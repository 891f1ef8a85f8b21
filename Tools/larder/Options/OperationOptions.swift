import ArgumentParser
import Larder
import LarderCommandLine

/// The operation that a verb works with.
struct OperationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A GraphQL document with one or several operations and their fragments.", valueName: "file"))
    var operation: String

    @OptionGroup var document: DocumentOptions

    func value() throws(Failure) -> GraphQLOperation {
        GraphQLOperation(
            try InputFile(role: "the operation", path: operation).text(), name: document.name,
            variables: try document.values())
    }
}
