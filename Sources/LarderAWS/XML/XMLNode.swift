/// An element of an answer: its name without a prefix, the text within it, and the elements within it.
struct XMLNode: Sendable, Hashable {
    var name: String
    var text = ""
    var children: [XMLNode] = []

    /// The text of the first child of this name; nil where there is none.
    subscript(_ name: String) -> String? { children.first { $0.name == name }?.text }

    /// All children of a name.
    func all(_ name: String) -> [XMLNode] { children.filter { $0.name == name } }
}

extension XMLNode {
    /// Text as the content of an element.
    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }
}
