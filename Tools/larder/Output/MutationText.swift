import Foundation
import LarderCommandLine
import LarderOperations

// A mutation as the tool shows it.

extension Mutation {
    private var members: [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = [
            ("id", .string(id.text)), ("sequence", .int(Int(sequence))), ("state", .string(state.description)),
            ("isStalled", .boolean(isStalled)), ("lane", .string(lane)), ("attempts", .int(attempts)),
            ("operation", content.operationName.map(JSONText.string) ?? .null), ("created", .string(created.text)),
        ]
        if let failure { members.append(("failure", failure.json)) }
        return members
    }

    var summary: JSONText { .object(members) }

    var whole: JSONText {
        .object(
            members + [
                ("idempotencyKey", .string(idempotencyKey)), ("document", .string(content.document)),
                ("variables", .raw(content.variables)), ("dependencies", .strings(dependencies.map(\.text))),
                ("transfers", .strings(transfers.map(\.text))),
                ("optimisticResponse", content.optimisticResponse.map(JSONText.raw) ?? .null),
                ("expires", expires.map { .string($0.text) } ?? .null),
            ])
    }

    var line: String {
        let failure = failure.map { " \($0.line)" } ?? ""
        let lane = lane.isEmpty ? "-" : lane
        let name = content.operationName ?? "-"
        return Output.oneLine(
            "\(state)\(isStalled ? " (stalled)" : "") \(id.text) \(sequence) \(lane) \(attempts) \(name)\(failure)")
    }

    var lines: String {
        [
            line, "key \(idempotencyKey)", "created \(created.text)",
            "variables \(String(decoding: content.variables, as: UTF8.self))", "document \(content.document)",
        ].map(Output.oneLine).joined(separator: "\n")
    }
}

extension Outcome {
    private var name: String { kind == .applied ? "applied" : "discarded" }

    var json: JSONText {
        .object([
            ("id", .string(mutation.text)), ("sequence", .int(Int(sequence))), ("state", .string(name)),
            ("settled", .string(settled.text)), ("result", result.map(JSONText.raw) ?? .null),
            ("failure", failure?.json ?? .null), ("errors", errors.map(JSONText.raw) ?? .array([])),
        ])
    }

    var line: String {
        let failed = errors.map { " errors \(String(decoding: $0, as: UTF8.self))" } ?? ""
        return Output.oneLine(
            "\(name) \(mutation.text) \(sequence) \(settled.text)" + (failure.map { " \($0.line)" } ?? "") + failed)
    }
}

extension MutationFailure {
    var json: JSONText {
        .object([
            ("kind", .string(self.class.rawValue)), ("code", code.map(JSONText.string) ?? .null),
            ("message", .string(message)), ("time", .string(time.text)),
        ])
    }

    var line: String { "\(self.class.rawValue): \(message)" }
}

extension UUID {
    /// In small letters, as everywhere.
    var text: String { uuidString.lowercased() }
}

extension Date {
    /// ISO 8601, to the second, in UTC.
    var text: String { formatted(.iso8601) }
}
