/// Values are equal if their kinds and bytes are: texts that are equal only after Unicode normalization are different
/// arguments.
extension Value: Hashable {
    public static func == (left: Value, right: Value) -> Bool {
        switch (left, right) {
        case (.null, .null): true
        case (.boolean(let left), .boolean(let right)): left == right
        case (.int(let left), .int(let right)): left == right
        case (.float(let left), .float(let right)): left == right
        case (.number(let left), .number(let right)), (.string(let left), .string(let right)):
            left.hasSameBytes(as: right)
        case (.list(let left), .list(let right)): left == right
        case (.object(let left), .object(let right)):
            left.count == right.count
                && left.allSatisfy { name, value in
                    // The dictionary finds keys by Unicode's equivalence.
                    guard let index = right.index(forKey: name) else { return false }
                    return right[index].key.hasSameBytes(as: name) && right[index].value == value
                }
        default: false
        }
    }

    public func hash(into hasher: inout Hasher) {
        switch self {
        case .null: hasher.combine(0 as UInt8)
        case .boolean(let value): hasher.combine(value)
        case .int(let value): hasher.combine(value)
        case .float(let value): hasher.combine(value)
        case .number(let text): hasher.combineBytes(of: text)
        case .string(let text):
            hasher.combine(1 as UInt8)
            hasher.combineBytes(of: text)
        case .list(let elements): hasher.combine(elements)
        // A dictionary's own hash is the same for every order of its members; keys count as the dictionary sees them.
        case .object(let members): hasher.combine(members)
        }
    }
}
