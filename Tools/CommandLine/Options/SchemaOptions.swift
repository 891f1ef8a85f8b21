package import ArgumentParser

/// The schema that a verb works with.
package struct SchemaOptions: ParsableArguments {
    @Option(
        name: .customLong("schema"),
        help: ArgumentHelp(
            "A schema in the schema definition language. May be given several times: the texts are joined, so that key "
                + "policies can be kept apart from the server's own.",
            valueName: "file"))
    package var files: [String] = []

    package init() {}

    package func texts() throws(Failure) -> [String] {
        guard !files.isEmpty else { throw Failure(usage: "No schema: name its file by --schema") }
        var texts: [String] = []
        for file in files { texts.append(try InputFile(role: "the schema", path: file).text()) }
        return texts
    }
}
