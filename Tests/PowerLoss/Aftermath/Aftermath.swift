package import Foundation
package import Larder
import LarderOperations
import LarderRecords

/// Opens a store that the power was taken from, and looks whether it keeps what was promised.
package struct Aftermath: Sendable {
    let folder: URL
    let schema: Schema
    let promised: Acknowledged
    /// Whether somebody opens and closes the store first, and does nothing with it.
    let hasVisitor: Bool

    package init(folder: URL, schema: Schema, promised: Acknowledged, hasVisitor: Bool) {
        (self.folder, self.schema, self.promised, self.hasVisitor) = (folder, schema, promised, hasVisitor)
    }

    /// What is not as it must be.
    package func problems() async -> [String] {
        var problems: [String] = []
        do {
            let server = RecipeLedger(after: promised.effects)
            if hasVisitor {
                let store = try Store.open(at: folder, schema: schema)
                _ = try store.partition()
                try store.close()
            }
            let store = try Store.open(at: folder, schema: schema)
            let app = try store.partition(server: server)
            try checkFiles(app, &problems)
            try checkPromises(app, &problems)
            try await checkWatcher(app, &problems)
            try await drain(app)
            try checkEffects(app, server, &problems)
            try store.close()
        } catch { problems.append("\(error)") }
        return problems
    }

    private func checkFiles(_ app: Partition, _ problems: inout [String]) throws {
        let cache = try app.records.check()
        if !cache.isSound { problems.append("the cache is unsound: \(cache.problems.first.map { "\($0)" } ?? "?")") }
        guard FileManager.default.fileExists(atPath: folder.path + "/\(OperationsDatabase.fileName)") else { return }
        let database = try OperationsDatabase(folder: folder)
        problems += try database.check().problems.map { "the queue is unsound: \($0)" }
        try database.close()
    }

    /// Before anything is sent: what was acknowledged is there, and so is the answer of whatever has left the queue.
    private func checkPromises(_ app: Partition, _ problems: inout [String]) throws {
        for (id, promise) in promised.mutations {
            guard let status = try app.mutation(id).status() else {
                problems.append("mutation \(promise.tag) was accepted and is lost")
                continue
            }
            let state = status.state
            let isAsPromised =
                switch promise.state {
                case .applied?: state == .applied
                case .discarded?: state == .discarded
                case .deadLetter?:
                    state == .deadLetter || promise.isBeingReplayed || promise.isBeingDiscarded && state == .discarded
                default: true
                }
            if !isAsPromised {
                problems.append("mutation \(promise.tag) was \(promise.state.map(\.rawValue) ?? "?") and is \(state)")
            }
            // What was edited after an attempt has another key than the one that is its id.
            let keys = ["\(id)"] + promised.effects.filter { $0.effect.tag == promise.tag }.map(\.key)
            let isKnown = try keys.compactMap(AppliedKey.init).contains { try app.records.isApplied($0) }
            if state == .applied, !isKnown {
                problems.append("mutation \(promise.tag) is settled, and the cache knows nothing of its answer")
            }
        }
    }

    /// What changes after the cut, a watcher that was there before is told of: the number of a lost commit is not given
    /// to another.
    private func checkWatcher(_ app: Partition, _ problems: inout [String]) async throws {
        guard try app.watcherNames().contains(PowerLossLoad.watcher),
            let before = try? app.read(PowerLossLoad.list), before["recipes"] != nil
        else { return }
        let plain = try app.read("Recipe:plain", PowerLossLoad.card)["stars"]?.int ?? 0
        try await app.write("Recipe:plain", PowerLossLoad.card, ["title": "Porridge", "stars": .int(Int64(plain + 1))])
        var states = try await app.watch(named: PowerLossLoad.watcher).makeAsyncIterator()
        guard let first = try await states.next() else { return problems.append("the watcher ended") }
        if case .objects(let keys) = first.changes, !keys.contains("Recipe:plain") {
            problems.append("the watcher skipped a change: it told of \(keys)")
        }
    }

    private func drain(_ app: Partition) async throws {
        var options = MutationRunner.Options()
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        try await MutationRunner(app, options: options).drain()
    }

    /// After everything was sent: each effect once, and the cache as the server.
    private func checkEffects(_ app: Partition, _ server: RecipeLedger, _ problems: inout [String]) throws {
        let counts = Dictionary(server.effects.compactMap(\.tag).map { ($0, 1) }, uniquingKeysWith: +)
        for (tag, count) in counts where count > 1 { problems.append("mutation \(tag) took effect \(count) times") }
        for (id, promise) in promised.mutations {
            guard let status = try app.mutation(id).status() else { continue }
            let count = counts[promise.tag] ?? 0
            switch status.state {
            case .applied where count == 1: break
            case .deadLetter where count == 0, .discarded where count == 0: break
            default: problems.append("mutation \(promise.tag) is \(status.state) and took effect \(count) times")
            }
        }
        for (id, recipe) in server.recipes {
            guard let stored = try? app.read("Recipe:\(id)", PowerLossLoad.card) else { continue }
            if stored["title"]?.string != recipe.title || stored["stars"]?.int != Int64(recipe.stars) {
                problems.append("the cache has \(stored) for \(id), and the server \(recipe)")
            }
        }
    }
}
