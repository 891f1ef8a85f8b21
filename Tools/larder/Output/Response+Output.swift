import Larder
import LarderCommandLine

extension Response {
    /// What `query` and `fetch` tell of an answer under `--json`.
    var result: JSONText {
        .object([
            ("data", .raw(json)), ("isComplete", .boolean(isComplete)),
            ("missing", .array(missing.map(JSONText.init))), ("errors", .array(errors.map(JSONText.init))),
            ("age", age.map { .int(Int(clamping: $0.components.seconds)) } ?? .null),
            ("isExpired", .boolean(isExpired)),
        ])
    }

    /// The answer as a server would give it.
    var envelope: JSONText {
        var members: [(name: String, value: JSONText)] = [("data", .raw(json))]
        if !errors.isEmpty { members.append(("errors", .array(errors.map(JSONText.init)))) }
        return .object(members)
    }
}

extension Output {
    func noteMissing(_ response: Response) {
        guard !response.isComplete else { return }
        note("the store does not know \(response.missing.map(\.description).joined(separator: ", "))")
    }
}
