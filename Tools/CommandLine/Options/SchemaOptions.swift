package import ArgumentParser

/// The schema that a verb works with.
package struct SchemaOptions: ParsableArguments {
    @Option(
        name: .customLong("schema"),
        help: ArgumentHelp(
            "A schema in the schema definition language. May be given several times: the texts are joined, so that key "
                + "policies can be kept apart from the server's own. Default: the schema that the store holds.",
            valueName: "file"))
    package var files: [String] = []

    package init() {}

    /// None where no file was named: the store's own schema is meant.
    package func texts() throws(Failure) -> [String] {
        var texts: [String] = []
        for file in files { texts.append(try InputFile(role: "the schema", path: file).text()) }
        return texts
    }
}
