import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

struct Watchers: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Lists the watchers that outlive their program, and how far each has come.",
        discussion: "One a line: name, epoch and number of the last change that was given, operation.")

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let watchers = try await store.folder().withOperations(.reading, output) { try $0.watchers.list() } ?? []
        try output.result(
            .object([("watchers", .array(watchers.map(\.json)))]), text: watchers.map(\.line).joined(separator: "\n"))
    }
}

extension StoredWatcher {
    fileprivate var json: JSONText {
        .object([
            ("name", .string(name)), ("document", .string(document)),
            ("operation", operationName.map(JSONText.string) ?? .null), ("variables", .raw(variables)),
            (
                "position",
                position.map { position in
                    .object([
                        ("epoch", .string(String(position.epoch, radix: 16))),
                        ("number", .int(Int(clamping: position.number))),
                    ])
                } ?? .null
            ),
        ])
    }

    fileprivate var line: String {
        let place = position.map { "\(String($0.epoch, radix: 16)) \($0.number)" } ?? "- -"
        return Output.oneLine("\(name) \(place) \(operationName ?? document)")
    }
}
