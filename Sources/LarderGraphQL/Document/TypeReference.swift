/// A type as it is written: `[Movie!]!`.
package indirect enum TypeReference: Sendable, Hashable {
    case named(String)
    case list(TypeReference)
    case nonNull(TypeReference)

    /// The name inside all wrappers.
    package var name: String {
        var type = self
        while true {
            switch type {
            case .named(let name): return name
            case .list(let inner), .nonNull(let inner): type = inner
            }
        }
    }
}

extension TypeReference: CustomStringConvertible {
    package var description: String {
        switch self {
        case .named(let name): name
        case .list(let inner): "[\(inner)]"
        case .nonNull(let inner): "\(inner)!"
        }
    }
}
