internal import LarderGraphQL
internal import LarderOperations

/// Finds the real ids in an answer: they stand where the optimistic response has the temporary ones.
struct TemporaryIDReading {
    private let tokens: [String: TemporaryID]
    private let optimistic: Value?

    init(_ mutation: Mutation) {
        tokens = Dictionary(mutation.temporaryIDs.map { ($0.text, $0) }, uniquingKeysWith: { first, _ in first })
        optimistic = tokens.isEmpty
            ? nil : mutation.content.optimisticResponse.flatMap { try? Value(json: $0) }
    }

    /// - Parameter answer: A whole response, with `data`.
    func realIDs(in answer: [UInt8]) -> [TemporaryID: String] {
        guard let optimistic, case .object(let members)? = try? Value(json: answer), let data = members["data"] else {
            return [:]
        }
        var found: [TemporaryID: String] = [:]
        compare(optimistic, data, &found)
        return found
    }

    // The recursion is as deep as the optimistic response, which was parsed along its operation.
    private func compare(_ expected: Value, _ came: Value, _ found: inout [TemporaryID: String]) {
        switch (expected, came) {
        case (.object(let expected), .object(let came)):
            for (name, value) in expected { if let other = came[name] { compare(value, other, &found) } }
        case (.list(let expected), .list(let came)):
            for (value, other) in zip(expected, came) { compare(value, other, &found) }
        case (.string(let token), .string(let real)):
            // Neither nothing nor a temporary id, this one or another's, is what a server calls an object.
            if let id = tokens[token], !real.isEmpty, TemporaryID(real) == nil { found[id] = found[id] ?? real }
        case (.string(let token), .int(let real)):
            if let id = tokens[token] { found[id] = found[id] ?? String(real) }
        default: return
        }
    }
}
