/// As GraphQL writes paths: a list of names and positions.
extension ResponsePath: Codable {
    public init(from decoder: any Decoder) throws {
        var container = try decoder.unkeyedContainer()
        self.init([])
        while !container.isAtEnd { components.append(try container.decode(Component.self)) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.unkeyedContainer()
        for component in components { try container.encode(component) }
    }
}

extension ResponsePath.Component: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let name = try? container.decode(String.self) {
            self = .field(name)
        } else {
            self = .index(try container.decode(Int.self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .field(let name): try container.encode(name)
        case .index(let index): try container.encode(index)
        }
    }
}
