import Foundation
import Larder
import LarderOperations

/// Opens a store that the power was taken from, and looks whether its transfers are as was promised, and end well.
package struct TransferAftermath: Sendable {
    private struct Promise {
        var id: TransferID
        var key: String
        /// Of a download: the file that it makes.
        var name: String?
        var isDone = false
    }

    private let remains: Remains
    private var promises: [Promise] = []
    private var effects: [ObjectLedger.Effect] = []

    package init(_ remains: Remains) {
        self.remains = remains
        for mark in remains.marks {
            let words = mark.split(separator: " ").map(String.init)
            if words.count > 3, words[0] == "accepted", let id = TransferID(words[1]) {
                promises.append(Promise(id: id, key: words[3], name: words.count > 4 ? words[4] : nil))
            } else if words.count > 1, words[0] == "done" {
                for index in promises.indices where "\(promises[index].id)" == words[1] {
                    promises[index].isDone = true
                }
            } else if let effect = ObjectLedger.Effect(words: words) {
                effects.append(effect)
            }
        }
    }

    /// What is not as it must be.
    package func problems() async -> [String] {
        var problems: [String] = []
        do {
            let storage = ObjectLedger(after: effects)
            let store = try Store.open(
                at: remains.root.appending(path: "store"), schema: try Schema(parsing: PowerLossLoad.schema))
            let app = try store.partition()
            for promise in promises { try check(promise, app, storage, &problems) }
            let before = Dictionary(try app.transfers.list().map { ($0.id, $0) }) { $1 }
            try await TransferRunner(app, storage: storage, options: TransferLoad.options()).drain()
            for promise in promises { try checkEnd(of: promise, before[promise.id], app, storage, &problems) }
            problems += storage.sentAgain.map { "part \($0) was sent again" }
            problems += storage.wrong.map { "other bytes of \($0) were sent than the file has" }
            problems += storage.unfinished.map { "an upload of \($0) is left at the storage" }
            let partials = try? FileManager.default.contentsOfDirectory(
                atPath: remains.root.appending(path: "store/transfers").path)
            problems += (partials ?? []).map { "\($0) is left in transfers/" }
            try store.close()
        } catch { problems.append("\(error)") }
        return problems
    }

    private func bytes(_ name: String) -> Data? {
        try? Data(contentsOf: remains.root.appending(path: "\(TransferLoad.folderName)/\(name)"))
    }

    /// Before anything goes on: it is known, done if it was said to be, and nothing else than a whole file is in its
    /// place.
    private func check(
        _ promise: Promise, _ app: Partition, _ storage: ObjectLedger, _ problems: inout [String]
    ) throws {
        guard let status = try? app.transfers[promise.id].status() else {
            return problems.append("the transfer of \(promise.key) was accepted and is lost")
        }
        let isDone = promise.isDone || status.state == .done
        if promise.isDone, status.state != .done { problems.append("\(promise.key) was done and is \(status.state)") }
        guard let name = promise.name else {
            if isDone, !storage.objects.contains(promise.key) {
                problems.append("\(promise.key) is done and not there")
            }
            return
        }
        let found = bytes(name)
        if found == Data(TransferLoad.bytes(of: promise.key)) { return }
        let isUntouched = found == (name.hasPrefix("old") ? TransferLoad.old : nil)
        if isDone || !isUntouched {
            problems.append("\(name) has \(found?.count ?? -1) bytes that it must not have, \(status.state)")
        }
    }

    private func checkEnd(
        of promise: Promise, _ before: TransferStatus?, _ app: Partition, _ storage: ObjectLedger,
        _ problems: inout [String]
    ) throws {
        guard let status = try? app.transfers[promise.id].status() else { return }
        guard status.state == .done else {
            return problems.append("\(promise.key) ends \(status.state): \(status.failure?.message ?? "")")
        }
        guard let name = promise.name else {
            if !storage.objects.contains(promise.key) { problems.append("\(promise.key) was not uploaded") }
            return
        }
        let whole = Data(TransferLoad.bytes(of: promise.key))
        if bytes(name) != whole { problems.append("\(name) is not what the object is") }
        if remains.isAll, storage.received(of: promise.key) > Int64(whole.count) - (before?.arrived ?? 0) {
            problems.append("what had arrived of \(promise.key) was received again")
        }
    }
}
