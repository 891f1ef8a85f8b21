/// Literals are equal if their bytes are: texts that are equal only after Unicode normalization are different
/// arguments, and a server may answer them differently.
extension Literal: Hashable {
    package static func == (left: Literal, right: Literal) -> Bool {
        switch (left, right) {
        case (.variable(let left), .variable(let right)), (.int(let left), .int(let right)),
            (.float(let left), .float(let right)), (.string(let left), .string(let right)),
            (.enumeration(let left), .enumeration(let right)):
            left.hasSameBytes(as: right)
        case (.boolean(let left), .boolean(let right)): left == right
        case (.null, .null): true
        case (.list(let left), .list(let right)): left == right
        case (.object(let left), .object(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        switch self {
        case .variable(let text): hasher.combine(0 as UInt8, text)
        case .int(let text): hasher.combine(1 as UInt8, text)
        case .float(let text): hasher.combine(2 as UInt8, text)
        case .string(let text): hasher.combine(3 as UInt8, text)
        case .enumeration(let text): hasher.combine(4 as UInt8, text)
        case .boolean(let value): hasher.combine(value)
        case .null: hasher.combine(5 as UInt8)
        case .list(let elements): hasher.combine(elements)
        case .object(let fields): hasher.combine(fields)
        }
    }
}

extension Literal.ObjectField: Hashable {
    package static func == (left: Literal.ObjectField, right: Literal.ObjectField) -> Bool {
        left.name.hasSameBytes(as: right.name) && left.value == right.value
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(6 as UInt8, name)
        hasher.combine(value)
    }
}

extension Hasher {
    /// A text by its bytes, and what kind of thing it is.
    fileprivate mutating func combine(_ kind: UInt8, _ text: String) {
        combine(kind)
        combineBytes(of: text)
    }
}
