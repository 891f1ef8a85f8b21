import Foundation
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords

// A transfer as the tool shows it.

extension StoredTransfer {
    var members: [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = [
            ("id", .string(id.text)), ("sequence", .int(Int(sequence))), ("partition", .string(partition)),
            ("kind", .string(kind.text)), ("state", .string(state.description)),
            ("storage", storage.map(JSONText.string) ?? .null), ("bucket", .string(bucket)),
            ("key", .string(key)), ("region", region.map(JSONText.string) ?? .null), ("file", .string(path)),
            ("priority", .int(priority)), ("size", size.map { .int(Int($0)) } ?? .null),
            ("arrived", .int(Int(completed))), ("attempts", .int(attempts)), ("created", .string(created.text)),
        ]
        if let failure { members.append(("failure", failure.json)) }
        return members
    }

    var line: String { Output.oneLine(cells.filter { !$0.text.isEmpty }.map(\.text).joined(separator: " ")) }

    /// The object, with the storage's name before it where that has one.
    var place: String { "\(storage.map { "\($0):" } ?? "")\(bucket)/\(key)" }

    fileprivate var cells: [TableCell] {
        [
            TableCell("\(state)", state.tone), TableCell(id.text), TableCell(kind.text),
            TableCell("\(completed)/\(size.map(String.init) ?? "-")"), TableCell("\(attempts)"),
            TableCell(place), TableCell(path), TableCell(failure?.line ?? "", .bad),
        ]
    }
}

extension TransferState {
    fileprivate var tone: TableCell.Tone? {
        switch self {
        case .pending, .cancelled: nil
        case .running, .done: .good
        case .paused, .cancelling: .warning
        case .failed: .bad
        }
    }
}

extension OwnedRow where Row == StoredTransfer {
    var summary: JSONText { .object(row.members + owner.members.filter { $0.name != "partition" }) }

    var cells: [TableCell] {
        var cells = row.cells
        cells.insert(TableCell(owner.word), at: cells.count - 1)
        cells.insert(TableCell(row.created.shown, .faint), at: cells.count - 1)
        return cells
    }
}

/// A transfer with what is known of it elsewhere.
struct ShownTransfer {
    var transfer: StoredTransfer
    var owner: StoredPartition
    /// How many parts have arrived whole.
    var parts: Int
    /// The mutations that wait for it.
    var waiting: [UUID]

    var json: JSONText {
        func text(_ date: Date?) -> JSONText { date.map { .string($0.text) } ?? .null }
        return .object(
            transfer.members + owner.members.filter { $0.name != "partition" } + [
                ("replaces", .boolean(transfer.replaces)),
                ("contentType", transfer.contentType.map(JSONText.string) ?? .null),
                ("metadata", transfer.metadata.map(JSONText.raw) ?? .object([])),
                ("partSize", transfer.partSize.map { .int(Int($0)) } ?? .null), ("parts", .int(parts)),
                ("upload", transfer.upload.map(JSONText.string) ?? .null),
                ("etag", transfer.etag.map(JSONText.string) ?? .null),
                ("version", transfer.version.map(JSONText.string) ?? .null),
                ("crc32c", transfer.crc32c.map { .string($0.digits) } ?? .null),
                ("sha256", transfer.sha256.map { .string($0.digits) } ?? .null),
                ("expires", text(transfer.expires)), ("notBefore", text(transfer.notBefore)),
                ("ended", text(transfer.ended)), ("mutations", .strings(waiting.map(\.text))),
            ])
    }

    var lines: String {
        var lines = [transfer.line, "partition \(owner.name) \(owner.word)", "created \(transfer.created.shown)"]
        if let expires = transfer.expires { lines.append("expires \(expires.shown)") }
        if let time = transfer.notBefore { lines.append("not before \(time.shown)") }
        if let ended = transfer.ended { lines.append("ended \(ended.shown)") }
        if let size = transfer.partSize { lines.append("parts \(parts) of \(size.counted("byte"))") }
        if let upload = transfer.upload { lines.append("upload \(upload)") }
        if let etag = transfer.etag { lines.append("etag \(etag)") }
        if let version = transfer.version { lines.append("version \(version)") }
        if let crc32c = transfer.crc32c { lines.append("crc32c \(crc32c.digits)") }
        if let sha256 = transfer.sha256 { lines.append("sha256 \(sha256.digits)") }
        lines += waiting.map { "waiting mutation \($0.text)" }
        return lines.map(Output.oneLine).joined(separator: "\n")
    }
}

extension UInt32 {
    /// Eight hexadecimal digits.
    fileprivate var digits: String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }
}

extension [UInt8] {
    /// Two hexadecimal digits for each.
    fileprivate var digits: String { hexadecimal(self) }
}

extension TransferFailure {
    var json: JSONText {
        .object([("code", .string(code)), ("message", .string(message)), ("time", .string(time.text))])
    }

    var line: String { "\(code): \(message)" }
}

extension TransferDraft.Kind {
    var text: String {
        switch self {
        case .upload: "upload"
        case .download: "download"
        }
    }
}
