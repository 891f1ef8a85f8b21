import Foundation
import Larder
import LarderCommandLine
import LarderOperations

// What transfers have left behind, as the tool shows it.

extension TransferRemains {
    var isEmpty: Bool { files.isEmpty && transfers.isEmpty }

    /// Transfers that have an upload at the storage, by its name.
    private var uploads: [StoredTransfer] { transfers.filter { $0.upload != nil } }
    /// Transfers to be cancelled that have nothing but perhaps a file.
    private var cancelling: [StoredTransfer] {
        transfers.filter { $0.state == .cancelling && $0.upload == nil && $0.uploadsBefore == nil }
    }
    private var left: [Left] {
        transfers.filter { $0.upload == nil && $0.uploadsBefore != nil }
            .map { Left(transfer: $0.id, reason: .noName) }
    }

    var json: JSONText { .remains(isWritten: false, files, uploads, cancelling, left) }

    var lines: String {
        (files.map { "would remove \($0.line)" } + uploads.map { "would abort \($0.uploadLine)" }
            + cancelling.map { "would note as cancelled \($0.id.text)" }
            + left.map { "would leave \($0.text)" })
            .map(Output.oneLine).joined(separator: "\n")
    }
}

extension TransferRemains.Cleared {
    var json: JSONText {
        .remains(isWritten: true, files, uploads, transfers.filter { $0.state == .cancelling }, left)
    }

    var lines: String {
        (files.map { "removed \($0.line)" } + uploads.map { "aborted \($0.uploadLine)" }
            + transfers.filter { $0.state == .cancelling }.map { "noted as cancelled \($0.id.text)" })
            .map(Output.oneLine).joined(separator: "\n")
    }
}

extension TransferRemains.Left {
    /// Whether it was tried in vain.
    var isFailure: Bool {
        switch reason {
        case .runnerWorks, .noStorage, .noName: false
        case .object, .local: true
        }
    }

    private var why: String {
        switch reason {
        case .runnerWorks: "a program that has the store open carries transfers out, and clears it away itself"
        case .noStorage:
            "its upload is at the storage, which is reached with --region, with --storage where it has a name, and "
                + "with keys in the environment"
        case .noName:
            "the storage was asked to begin an upload, and its name did not arrive; the store's program looks for it"
        case .object(let error): "the storage has not forgotten its upload: \(error)"
        case .local(let error): error.message
        }
    }

    private var code: String {
        switch reason {
        case .runnerWorks: "runnerWorks"
        case .noStorage: "noStorage"
        case .noName: "noName"
        case .object(let error): error.code.rawValue
        case .local(let error): error.code.rawValue
        }
    }

    var text: String { "\(transfer.text): \(why)" }

    var json: JSONText {
        .object([("transfer", .string(transfer.text)), ("code", .string(code)), ("reason", .string(why))])
    }
}

extension TransferRemains.File {
    fileprivate var line: String { "\(url.path) \(bytes) \(state?.description ?? "unknown")" }

    fileprivate var json: JSONText {
        .object([
            ("file", .string(url.path)), ("bytes", .int(Int(bytes))), ("transfer", .string(transfer.text)),
            ("state", state.map { .string($0.description) } ?? .null),
        ])
    }
}

extension StoredTransfer {
    fileprivate var uploadLine: String { "\(upload ?? "-") of \(id.text) \(state) \(place)" }

    fileprivate var uploadJSON: JSONText {
        .object([
            ("transfer", .string(id.text)), ("state", .string(state.description)),
            ("storage", storage.map(JSONText.string) ?? .null), ("bucket", .string(bucket)), ("key", .string(key)),
            ("upload", upload.map(JSONText.string) ?? .null),
        ])
    }
}

extension JSONText {
    fileprivate static func remains(
        isWritten: Bool, _ files: [TransferRemains.File], _ uploads: [StoredTransfer], _ cancelled: [StoredTransfer],
        _ left: [TransferRemains.Left]
    ) -> JSONText {
        .object([
            ("isWritten", .boolean(isWritten)), ("files", .array(files.map(\.json))),
            ("uploads", .array(uploads.map(\.uploadJSON))), ("cancelled", .strings(cancelled.map(\.id.text))),
            ("left", .array(left.map(\.json))),
        ])
    }
}
