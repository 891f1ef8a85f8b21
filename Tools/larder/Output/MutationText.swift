import Foundation
import LarderCommandLine
import LarderOperations

// A mutation as the tool shows it.

extension OwnedRow where Row == Mutation {
    private var members: [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = [
            ("id", .string(row.id.text)), ("sequence", .int(Int(row.sequence))),
            ("state", .string(row.state.description)), ("isStalled", .boolean(row.isStalled)),
            ("lane", .string(row.lane)), ("attempts", .int(row.attempts)),
            ("operation", row.content.operationName.map(JSONText.string) ?? .null),
            ("created", .string(row.created.text)),
        ]
        members += owner.members
        if let failure = row.failure { members.append(("failure", failure.json)) }
        return members
    }

    var summary: JSONText { .object(members) }

    var whole: JSONText {
        .object(
            members + [
                ("idempotencyKey", .string(row.idempotencyKey)), ("document", .string(row.content.document)),
                ("variables", .raw(row.content.variables)), ("dependencies", .strings(row.dependencies.map(\.text))),
                ("transfers", .strings(row.transfers.map(\.text))),
                ("optimisticResponse", row.content.optimisticResponse.map(JSONText.raw) ?? .null),
                ("expires", row.expires.map { .string($0.text) } ?? .null),
            ])
    }

    var cells: [TableCell] {
        [
            TableCell("\(row.state)\(row.isStalled ? " (stalled)" : "")", row.state.tone), TableCell(row.id.text),
            TableCell("\(row.sequence)", .faint), TableCell(row.lane.isEmpty ? "-" : row.lane),
            TableCell("\(row.attempts)"), TableCell(row.content.operationName ?? "-"), TableCell(owner.word),
            TableCell(row.created.shown, .faint), TableCell(row.failure?.line ?? "", .bad),
        ]
    }

    var lines: String {
        let all: [String?] = [
            cells.filter { !$0.text.isEmpty }.map(\.text).joined(separator: " "), "key \(row.idempotencyKey)",
            "partition \(owner.name)", "created \(row.created.shown)", row.expires.map { "expires \($0.shown)" },
            "variables \(String(decoding: row.content.variables, as: UTF8.self))", "document \(row.content.document)",
        ]
        return all.compactMap(\.self).map(Output.oneLine).joined(separator: "\n")
    }
}

extension MutationState {
    fileprivate var tone: TableCell.Tone? {
        switch self {
        case .pending: nil
        case .inFlight, .acknowledged: .good
        case .deadLetter: .bad
        }
    }
}

extension Outcome {
    private var name: String { kind == .applied ? "applied" : "discarded" }

    var members: [(name: String, value: JSONText)] {
        [
            ("id", .string(mutation.text)), ("sequence", .int(Int(sequence))), ("state", .string(name)),
            ("settled", .string(settled.text)), ("result", result.map(JSONText.raw) ?? .null),
            ("failure", failure?.json ?? .null), ("errors", errors.map(JSONText.raw) ?? .array([])),
        ]
    }

    var line: String {
        let failed = errors.map { " errors \(String(decoding: $0, as: UTF8.self))" } ?? ""
        return Output.oneLine(
            "\(name) \(mutation.text) \(sequence) \(settled.shown)" + (failure.map { " \($0.line)" } ?? "") + failed)
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
