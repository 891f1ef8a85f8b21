import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

struct Repair: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Shows what is damaged and what can be saved; with --write, saves it.",
        discussion: """
            Nothing is repaired in place. What SQLite can read of a damaged larder.sqlite goes, row by row, into a new \
            file, and the damaged one is kept beside it under a name that ends in .damaged-TIME; no other process may \
            have it open. A damaged cache is emptied: what it held is fetched again. Without --write the exit status \
            is 3 if there is anything to be done.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var permission: WritePermission
    @OptionGroup var confirmation: Confirmation

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        guard permission.write else {
            let repair = try StoreRepair(of: store.url, options: store.options)
            try output.result(.object([("steps", repair.json)]), text: repair.text)
            if !repair.steps.isEmpty { throw Ended(.miss, hint: "'larder-migrate repair --write' does it") }
            return
        }
        try confirm(store, output)
        let (repair, report) = try await store.withLock(for: "repair") { lock in
            let repair = try StoreRepair(of: store.url, options: store.options)
            return (repair, try repair.carryOut(on: store.url, holding: lock, options: store.options))
        }
        try output.result(
            .object([("steps", repair.json), ("database", report?.json ?? .null)]),
            text: [repair.text, report?.text].compactMap(\.self).joined(separator: "\n"))
    }

    /// A file that is damaged may not say which environment is the current one: then there is no name to repeat.
    private func confirm(_ store: MigratedStore, _ output: Output) throws {
        do {
            try store.requireConfirmed(confirmation, to: "repair the store", output)
        } catch let error as OperationsError where [.damaged, .foreign].contains(error.code) {}
    }
}

extension StoreRepair {
    fileprivate var json: JSONText {
        .array(
            steps.map { step in
                switch step {
                case .salvageDatabase(let finding):
                    .object([("step", .string("salvageDatabase")), ("finding", .string(finding))])
                case .rebuildCache(let partition, let finding):
                    .object([
                        ("step", .string("rebuildCache")), ("partition", .string(partition)),
                        ("finding", .string(finding)),
                    ])
                }
            })
    }

    fileprivate var text: String {
        guard !steps.isEmpty else { return "the store is sound" }
        return steps.map { step in
            switch step {
            case .salvageDatabase(let finding):
                Output.oneLine("save what can be read of larder.sqlite into a new file (\(finding))")
            case .rebuildCache(let partition, let finding):
                Output.oneLine("empty the cache of partition \(partition), to be fetched again (\(finding))")
            }
        }.joined(separator: "\n")
    }
}

extension RepairReport {
    fileprivate var json: JSONText {
        .object([
            ("kept", .string(kept)), ("isNewStore", .boolean(isNewStore)), ("lost", .int(lost)),
            ("setAside", .int(setAside)),
            (
                "tables",
                .array(
                    rows.map { row in
                        .object([
                            ("table", .string(row.table)), ("saved", .int(row.saved)),
                            ("isDamaged", .boolean(row.isDamaged)),
                            ("damaged", .int(row.damaged)),
                        ])
                    })
            ),
        ])
    }

    fileprivate var text: String {
        var lines = rows.filter { $0.saved > 0 || $0.isDamaged || $0.damaged > 0 }.map { row in
            "saved \(row.saved.counted("row")) of \(row.table)\(row.isDamaged ? ", of which some cannot be read" : "")"
                + (row.damaged > 0
                    ? "; damaged, and now without all or part of what was in it: \(row.damaged.counted("row"))" : "")
        }
        if lost > 0 { lines.append("lost, since it cannot be read: \(lost.counted("mutation"))") }
        if setAside > 0 { lines.append("set aside, for you to look at: \(setAside.counted("mutation"))") }
        if isNewStore { lines.append("the store's identity is lost: its backups are another's from now on") }
        return (lines + ["the damaged file is \(kept)"]).joined(separator: "\n")
    }
}
