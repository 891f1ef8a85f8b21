import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords

struct Status: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Tells which formats the store has, and what is yet to be migrated.",
        discussion: "Only reads. The exit status is 3 if `up` has something to do.")

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        let status = try store.status()
        // What `up` would find: it says by itself what it refuses.
        let isPending = try !MigrationPlan(for: status, backingUpInto: nil).steps.isEmpty
        let holder = MigrationLock.holder(in: store.url, store.options.files)
        try output.result(
            .object([
                ("store", .string(store.url.path)), ("isCurrent", .boolean(!isPending)),
                ("schema", status.schema?.json ?? .null), ("caches", .array(status.caches.map(\.json))),
                ("lockHolder", holder.map(JSONText.string) ?? .null),
            ]),
            text: Self.text(status, holder))
        if isPending { throw Ended(.miss, hint: "'larder-migrate plan' shows the steps, and 'up' takes them") }
    }

    private static func text(_ status: StoreStatus, _ holder: String?) -> String {
        var lines: [String] = []
        if let schema = status.schema {
            lines.append("larder.sqlite  format \(schema.formatVersion)")
            for entry in schema.applied {
                let time = entry.applied.map { ", \($0.shown)" } ?? ""
                lines.append("applied        \(entry.label)\(time)")
            }
            for entry in schema.pending { lines.append("pending        \(entry.label)") }
        } else {
            lines.append("larder.sqlite  none yet")
        }
        for cache in status.caches {
            lines.append(
                "cache          \(cache.partition), generation \(cache.format.generation), "
                    + "\(cache.format.byteCount.counted("byte")): \(cache.format.state.text)")
        }
        if let holder { lines.append("locked         by \(holder)") }
        return lines.map(Output.oneLine).joined(separator: "\n")
    }
}

extension SchemaStatus {
    var json: JSONText {
        .object([
            ("format", .int(formatVersion)), ("identity", identity.map(JSONText.string) ?? .null),
            ("applied", .array(applied.map(\.json))), ("pending", .array(pending.map(\.json))),
        ])
    }
}

extension SchemaStatus.Entry {
    var json: JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("number", .int(number)), ("name", .string(name)), ("checksum", .string(checksum)),
        ]
        if let applied { members.append(("applied", .string(applied.text))) }
        return .object(members)
    }
}

extension StoreStatus.Cache {
    fileprivate var json: JSONText {
        var members: [(name: String, value: JSONText)] = [
            ("partition", .string(partition)), ("generation", .int(format.generation)),
            ("bytes", .int(format.byteCount)), ("state", .string(format.state.name)),
        ]
        switch format.state {
        case .current: members.append(("format", .int(Int(CacheFormat.current))))
        case .older(let version), .newer(let version): members.append(("format", .int(Int(version))))
        case .damaged(let reason): members.append(("reason", .string(reason)))
        case .absent: break
        }
        return .object(members)
    }
}

extension CacheFormat.State {
    var name: String {
        switch self {
        case .current: "current"
        case .older: "older"
        case .newer: "newer"
        case .damaged: "damaged"
        case .absent: "absent"
        }
    }

    var text: String {
        switch self {
        case .current: "format \(CacheFormat.current)"
        case .older(let version): "format \(version), to be migrated to \(CacheFormat.current)"
        case .newer(let version): "format \(version), of a newer program"
        case .damaged(let reason): "damaged: \(reason)"
        case .absent: "none"
        }
    }
}
