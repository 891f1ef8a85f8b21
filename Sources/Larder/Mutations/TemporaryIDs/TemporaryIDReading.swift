import LarderGraphQL
import LarderOperations
import LarderRecords

/// Finds the real ids in an answer: they stand where the optimistic response has the temporary ones.
///
/// Only a way through fields leads to the same object in both. What stands in a list is passed over: the server's list
/// may have another order, and objects of which the program does not know. Where several ways lead to one temporary id
/// and the answer does not have the same at the end of all of them, there is no telling which object was created, and
/// no id is taken.
struct TemporaryIDReading {
    private let tokens: [String: TemporaryID]
    private let optimistic: Value?

    init(_ mutation: Mutation) {
        self.init(mutation.temporaryIDs, optimisticResponse: mutation.content.optimisticResponse)
    }

    init(_ ids: [TemporaryID], optimisticResponse: [UInt8]?) {
        tokens = Dictionary(ids.map { ($0.text, $0) }, uniquingKeysWith: { first, _ in first })
        optimistic = tokens.isEmpty ? nil : optimisticResponse.flatMap { try? Value(json: $0) }
    }

    /// - Parameter answer: A whole response, with `data`.
    func realIDs(in answer: [UInt8]) -> [TemporaryID: String] {
        guard let optimistic, case .object(let members)? = try? Value(json: answer), let data = members["data"] else {
            return [:]
        }
        var found: [TemporaryID: Set<ExactText>] = [:]
        compare(optimistic, data, &found)
        return found.compactMapValues { $0.count == 1 ? $0.first?.text : nil }
    }

    // The recursion is as deep as the optimistic response, which was parsed along its operation.
    private func compare(_ expected: Value, _ came: Value, _ found: inout [TemporaryID: Set<ExactText>]) {
        switch expected {
        case .object(let expected):
            guard case .object(let came) = came else { return }
            for (name, value) in expected { if let other = came[name] { compare(value, other, &found) } }
        case .string(let token):
            // Neither nothing nor a temporary id, this one or another's, is what a server calls an object.
            guard let id = tokens[token], let real = came.idText, !real.isEmpty, TemporaryID(real) == nil else {
                return
            }
            found[id, default: []].insert(ExactText(real))
        default: return
        }
    }
}
