import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization

/// Opens, lists, runs, checks and repairs stores of which one value in one row of `larder.sqlite` is hostile. Says each
/// case before it begins, so that the last line tells which one ended the process, and what did not go as it must.
///
/// What must be: nothing traps; what reading refuses, checking names; other rows go their way; a repair leaves a store
/// that is sound.
struct RowFuzz {
    let folder: URL
    let seed: UInt64

    /// Tables of which a damaged row keeps a partition from being opened or worked on as a whole.
    private static let wholes: Set = [
        "partition", "environment", "current_partition", "store", "migration", "sqlite_sequence",
    ]

    /// - Parameter count: How many cases, taken at random; nil for all.
    func run(_ count: Int?) async throws {
        let template = folder.appending(path: "template")
        try await HostileStore.make(in: template)
        let sound = template.appending(path: OperationsDatabase.fileName)
        let loose = folder.appending(path: "loose.sqlite")
        try HostileRow.loosen(sound, into: loose)
        var random = SeededNumbers(seed: seed)
        var cases = try HostileRow.all(of: PlainDatabase(sound), &random)
        if let count {
            cases = (0..<count).map { _ in cases[Int(random.next() % UInt64(cases.count))] }
        }
        var tried = 0
        for row in cases {
            let store = folder.appending(path: "store")
            try? FileManager.default.removeItem(at: store)
            try FileManager.default.createDirectory(at: store, withIntermediateDirectories: true)
            let file = store.appending(path: OperationsDatabase.fileName)
            guard try row.put(into: file, loose: loose, sound: sound) else { continue }
            say("case \(row.description)")
            try await work(on: store, row)
            tried += 1
        }
        say("tried \(tried)")
    }

    private func work(on store: URL, _ row: HostileRow) async throws {
        let start = SuspendingClock.now
        let copy = folder.appending(path: "copy")
        try? FileManager.default.removeItem(at: copy)
        try FileManager.default.copyItem(at: store, to: copy)
        var names: [String] = []
        do { names = try OperationsDatabase.check(folder: store)?.problems.map(\.description) ?? [] } catch {
            names = ["\(error)"]
        }
        let use = HostileUse(store: store, files: folder.appending(path: "template"))
        await use.run()
        if names.isEmpty, let refusal = use.refusals.first(where: \.isDamage) {
            say("bad: checking names nothing, and \(refusal.what) says \(refusal.error)")
        }
        if let refusal = use.refusals.first(where: { !$0.isTyped }) {
            say("bad: \(refusal.what) says \(refusal.error)")
        }
        if !Self.wholes.contains(row.table), !use.isControlDone {
            let refusals = use.refusals.map { "\($0.what): \($0.error)" }
            say("bad: what has nothing to do with the row did not go on: \(refusals)")
        }
        repair(copy, row)
        if start.duration(to: .now) > .seconds(30) { say("bad: it took \(start.duration(to: .now))") }
    }

    private func repair(_ store: URL, _ row: HostileRow) {
        do {
            let lock = try MigrationLock.take(in: store, for: "a test", within: .zero)
            defer { lock.release() }
            _ = try OperationsDatabase.repair(folder: store, holding: lock)
            let problems = try OperationsDatabase.check(folder: store)?.problems ?? []
            if !problems.isEmpty { say("bad: repaired, and not sound: \(problems)") }
        } catch { say("bad: repair says \(error)") }
    }
}
