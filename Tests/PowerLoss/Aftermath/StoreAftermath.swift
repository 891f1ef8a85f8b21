import Foundation
import Larder
import LarderOperations

/// Looks whether a store keeps what was promised of it after a power cut; see `StoreLoad`.
package struct StoreAftermath: Sendable {
    let folder: URL
    private let words: [[String]]

    package init(_ remains: Remains) {
        (folder, words) = (remains.store, remains.words)
    }

    private func last(_ mark: String, _ name: String? = nil) -> Int? {
        words.lastIndex { $0.first == mark && (name == nil || $0.dropFirst().first == name) }
    }

    /// What is not as it must be.
    package func problems() async -> [String] {
        var problems: [String] = []
        do {
            let isForgotten = last("forgetting") != nil
            let names = StoreLoad.environments.filter { !isForgotten || $0 != "b" }
            try checkQueue(except: isForgotten ? "b" : nil, &problems)
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            try StoreRestoration.finish(folder)
            lock.release()
            let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
            for name in names where last("at", name) != nil {
                let app = try await store.switch(to: try StoreLoad.environment(name), pending: .park).partition
                if !(try app.records.check().isSound) { problems.append("the cache of \(name) is unsound") }
                try await checkSession(app, name, &problems)
                checkLarge(app, name, &problems)
            }
            if last("forgot") != nil, try store.partitionIdentities().contains(where: { $0.environment == "b" }) {
                problems.append("an environment that was forgotten is back")
            }
            try store.close()
        } catch { problems.append("\(error)") }
        return problems
    }

    private func checkQueue(except forgotten: String?, _ problems: inout [String]) throws {
        guard FileManager.default.fileExists(atPath: folder.path + "/\(OperationsDatabase.fileName)") else {
            if last("at") != nil { problems.append("the database is lost") }
            return
        }
        let database = try OperationsDatabase(folder: folder)
        problems += try database.check().problems.map { "the queue is unsound: \($0)" }
        let known = Set(try database.mutations.list().map { MutationID($0.id) })
        for line in words where line.count == 3 && line[0] == "accepted" && line[2] != forgotten {
            guard let id = MutationID(line[1]), !known.contains(id) else { continue }
            problems.append("mutation \(id) of \(line[2]) was accepted and is lost")
        }
        let at = words.last { ["at", "going"].contains($0.first) }
        if at?.first == "at", let name = at?.last, try database.environments.current()?.partition?.environment != name {
            problems.append("\(name) was the current environment, and is not")
        }
        try database.close()
    }

    private func checkSession(_ app: Partition, _ name: String, _ problems: inout [String]) async throws {
        guard let signed = last("signed", name) else { return }
        // Of one that failed it may be unknown whether it is there.
        let begun = words[signed...].filter { $0.first == "signing" && $0.dropFirst().first == name }
        let found = try await app.session.storedCredentials(within: .seconds(60))
        guard case .present(let credentials) = found else {
            return problems.append("the credentials of \(name) are \(found)")
        }
        let token = credentials.userPool?.idToken ?? ""
        let allowed = [words[signed].last ?? ""] + begun.compactMap(\.last)
        if !allowed.contains(token) { problems.append("the credentials of \(name) are \(token), not \(allowed)") }
    }

    /// Whole, of whichever life; there, once it was closed upon.
    private func checkLarge(_ app: Partition, _ name: String, _ problems: inout [String]) {
        let title = (try? app.read("Recipe:large", StoreLoad.large))?["title"]?.string
        let sizes = [20_000, 30_000, 9_000, 12_000]
        if let title, title.contains(where: { $0 != "x" }) || !sizes.contains(title.utf8.count) {
            problems.append("the large record of \(name) has \(title.utf8.count) characters")
        }
        // A restoration brings an earlier one back.
        if title == nil, last("stored", name) != nil { problems.append("the large record of \(name) is lost") }
    }
}
