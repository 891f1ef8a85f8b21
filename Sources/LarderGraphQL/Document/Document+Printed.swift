extension Document {
    /// The document as canonical text: operations, then fragments, two spaces of indentation, strings in one line.
    ///
    /// Parsing the text gives an equal document.
    package func printed() -> String {
        var printer = DocumentPrinter()
        printer.print(self)
        return printer.text
    }
}

extension Literal: CustomStringConvertible {
    /// The literal as GraphQL text.
    package var description: String {
        var printer = DocumentPrinter()
        printer.print(self)
        return printer.text
    }
}
