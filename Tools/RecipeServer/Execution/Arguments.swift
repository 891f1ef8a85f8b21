import LarderGraphQL

/// The arguments of a field, coerced to their types.
struct Arguments: Sendable {
    private let values: [String: Value]

    init(_ values: [String: Value]) { self.values = values }

    subscript(_ name: String) -> Value? { values[name] }

    /// nil where it is null or left out.
    func string(_ name: String) -> String? {
        if case .string(let value)? = values[name] { value } else { nil }
    }

    /// nil where it is null or left out.
    func int(_ name: String) -> Int? {
        if case .int(let value)? = values[name] { Int(value) } else { nil }
    }
}
