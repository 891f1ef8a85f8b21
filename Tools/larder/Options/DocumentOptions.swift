import ArgumentParser
import Larder
import LarderCommandLine

/// Which of a document's operations, or fragments, is meant, and with which variables.
struct DocumentOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Which operation of the file (or which fragment), where it has several.", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("A JSON object with the variables; - for standard input.", valueName: "file"))
    var variables: String?

    func values() throws(Failure) -> [String: Value] {
        guard let variables else { return [:] }
        let file = InputFile(role: "the variables", path: variables)
        let bytes = try file.bytes()
        let value: Value
        do { value = try Value(json: bytes) } catch { throw file.unusable("\(error)") }
        guard case .object(let members) = value else { throw file.unusable("it holds no JSON object") }
        return members
    }
}
