package import ArgumentParser
import Foundation
import Larder

/// The schema that a verb works with.
package struct SchemaOptions: ParsableArguments {
    @Option(
        name: .customLong("schema"),
        help: ArgumentHelp(
            "A schema in the schema definition language. May be given several times: the texts are joined, so that key "
                + "policies can be kept apart from the server's own. Of a .graphqlconfig.yml, the schema that it names. "
                + "Default: the schema that the store holds.",
            valueName: "file"))
    package var files: [String] = []

    package init() {}

    /// None where no file was named: the store's own schema is meant.
    package func texts() throws(Failure) -> [String] {
        var texts: [String] = []
        for file in files {
            texts.append(try InputFile(role: "the schema", path: try Self.schemaPath(file)).text())
        }
        return texts
    }

    private static func schemaPath(_ file: String) throws(Failure) -> String {
        guard URL(filePath: file).lastPathComponent.hasPrefix(".graphqlconfig") else { return file }
        do throws(LarderError) { return try GraphQLProject.read(contentsOf: URL(filePath: file)).schema.path } catch {
            throw Failure(usage: error.message)
        }
    }
}
