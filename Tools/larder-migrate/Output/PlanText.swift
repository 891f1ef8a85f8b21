import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

extension MigrationPlan.Step {
    var json: JSONText {
        switch self {
        case .backup(let folder):
            .object([("step", .string("backup")), ("folder", .string(folder.path))])
        case .apply(let entry):
            .object([
                ("step", .string("applyMigration")), ("number", .int(entry.number)), ("name", .string(entry.name)),
                ("checksum", .string(entry.checksum)),
            ])
        case .transformCache(let partition, let from):
            .object([
                ("step", .string("transformCache")), ("partition", .string(partition)), ("from", .int(Int(from))),
            ])
        case .rebuildCache(let partition, let from, let bytes):
            .object([
                ("step", .string("rebuildCache")), ("partition", .string(partition)), ("from", .int(Int(from))),
                ("bytes", .int(bytes)),
            ])
        }
    }

    var text: String {
        switch self {
        case .backup(let folder): "back up into \(folder.path)"
        case .apply(let entry): "apply migration \(entry.label)"
        case .transformCache(let partition, let from):
            "transform the cache of partition \(partition) from format \(from), as its next generation"
        case .rebuildCache(let partition, let from, let bytes):
            "rebuild the cache of partition \(partition), of format \(from): \(bytes.counted("byte")) to fetch again"
        }
    }
}

extension MigrationPlan {
    var json: JSONText { .array(steps.map(\.json)) }

    var text: String { steps.map(\.text).joined(separator: "\n") }
}
