/// The way from the root of a response to one of its values.
public struct ResponsePath: Sendable, Hashable {
    /// One step of the way.
    public enum Component: Sendable, Hashable {
        /// A response key: the alias of a field, or its name.
        case field(String)
        /// A position in a list, from 0.
        case index(Int)
    }

    /// From the root on; empty for the root itself.
    public var components: [Component]

    /// The way of these steps, from the root on.
    public init(_ components: [Component]) { self.components = components }
}

extension ResponsePath: CustomStringConvertible {
    /// `recipes.items[3].author`; the root is empty.
    public var description: String {
        var text = ""
        for component in components {
            switch component {
            case .field(let name): text += text.isEmpty ? name : ".\(name)"
            case .index(let index): text += "[\(index)]"
            }
        }
        return text
    }
}
