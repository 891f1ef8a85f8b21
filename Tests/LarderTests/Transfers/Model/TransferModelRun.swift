import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A store and a storage in memory, and beside them the model to which the same is done.
final class TransferModelRun {
    private static let backends = (backend("a"), backend("b"))

    /// How the storage behaves.
    private struct Mood: Sendable {
        /// Failures that pass, of calls to come.
        var faults = 0
        var code = ObjectError.Code.interrupted
        var refused: Set<String> = []
        var abortsFail = false
    }

    private final class Shared: Sendable {
        private let mood = Mutex(Mood())
        func withLock<Value>(_ body: (inout Mood) -> Value) -> Value { mood.withLock { body(&$0) } }
    }

    private let folder: URL
    private let storage = MemoryStorage()
    private let mood = Shared()
    private var random: SeededNumbers
    private var store: Store
    private var app: Partition
    private var model: [TransferID: ModelTransfer] = [:]
    private var count = 0

    init(_ folder: URL, seed: UInt64) throws {
        self.folder = folder
        random = SeededNumbers(seed: seed)
        (store, app) = try Self.open(folder)
        storage.onCall { [mood] call throws(ObjectError) in
            // A little time, so that a runner can be stopped anywhere.
            do { try await Task.sleep(for: .microseconds(200)) } catch {
                throw ObjectError(.cancelled, "cancelled")
            }
            let failure = mood.withLock { mood -> ObjectError.Code? in
                if case .abort = call { return mood.abortsFail ? .unreachable : nil }
                if case .put(let key) = call, mood.refused.contains(key) { return .accessDenied }
                if case .head(let key) = call, mood.refused.contains(key) { return .accessDenied }
                if case .beginUpload(let key) = call, mood.refused.contains(key) { return .accessDenied }
                guard mood.faults > 0 else { return nil }
                mood.faults -= 1
                return mood.code
            }
            if let failure { throw ObjectError(failure, "for a test") }
        }
    }

    private static func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition(of: backends.0, leaving: .park))
    }

    func close() throws { try store.close() }

    private var fixture: TransferFixture { TransferFixture(folder: folder, store: store, app: app, storage: storage) }

    private func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    private func any(_ isMeant: (ModelTransfer) -> Bool) -> TransferID? {
        // In an order that the seed repeats.
        let all = model.filter { isMeant($0.value) }.sorted { $0.value.location.key < $1.value.location.key }
        return all.isEmpty ? nil : all[below(all.count)].key
    }

    // MARK: Steps

    /// - Returns: What was done.
    func step() async throws -> String {
        switch below(20) {
        case 0..<6: return try await queue()
        case 6:
            return try await change({ $0.state == .pending }, "pause") {
                try await $0.pause()
            } after: {
                $0.state = .paused
            }
        case 7, 8:
            return try await change({ $0.state == .paused }, "resume") {
                try await $0.resume()
            } after: {
                $0.state = .pending
            }
        case 9:
            return try await change({ $0.state != .done && $0.state != .cancelled }, "cancel") {
                try await $0.cancel()
            } after: {
                $0.state = .cancelled
            }
        case 10, 11: return try await retry()
        case 12: return try write()
        case 13: return worsen()
        case 14: return try await discard()
        case 15:
            try store.close()
            (store, app) = try Self.open(folder)
            return "restart"
        case 16, 17: return try await interrupt()
        default: return try await drain()
        }
    }

    private func queue() async throws -> String {
        count += 1
        let key = String(format: "%04d", count)
        let location = ObjectLocation(bucket: "media", key: key)
        let size = [0, 100, 1024, 3999, 4001, 9000][below(6)]
        let (isUpload, isExpired, isRefused) = (below(2) == 0, below(8) == 0, below(6) == 0)
        let expires = isExpired ? Date(timeIntervalSinceNow: -1) : nil
        let transfer: Transfer
        let (file, bytes) = try fixture.file(key, bytes: size, seed: random.next())
        let place = isUpload ? file : folder.appending(path: "copy \(key)")
        if isUpload {
            transfer = try await app.transfers.upload(
                file, to: location, options: .init(priority: below(3), expires: expires))
        } else {
            storage.keep(bytes, at: location)
            transfer = try await app.transfers.download(
                location, to: place, options: .init(priority: below(3), expires: expires))
        }
        if isRefused { mood.withLock { _ = $0.refused.insert(key) } }
        model[transfer.id] = ModelTransfer(
            isUpload: isUpload, location: location, file: place, bytes: bytes, isExpired: isExpired,
            isRefused: isRefused)
        let traits = "\(isExpired ? ", expired" : "")\(isRefused ? ", refused" : "")"
        return "queue \(key), \(isUpload ? "up" : "down") \(size)\(traits)"
    }

    private func change(
        _ isMeant: (ModelTransfer) -> Bool, _ name: String, _ body: (Transfer) async throws -> Void,
        after: (inout ModelTransfer) -> Void
    ) async throws -> String {
        guard let id = any(isMeant), var transfer = model[id] else { return "no \(name)" }
        try await body(app.transfers[id])
        after(&transfer)
        model[id] = transfer
        return "\(name) \(transfer.location.key)"
    }

    private func retry() async throws -> String {
        let isFailed = { (transfer: ModelTransfer) in if case .failed = transfer.state { true } else { false } }
        return try await change(isFailed, "retry") {
            try await $0.retry()
        } after: { transfer in
            transfer.state = .pending
            (transfer.isExpired, transfer.isChanged) = (false, false)
            if self.below(2) == 0 {
                transfer.isRefused = false
                _ = self.mood.withLock { $0.refused.remove(transfer.location.key) }
            }
            if transfer.isUpload, let bytes = try? Data(contentsOf: transfer.file) { transfer.bytes = Array(bytes) }
        }
    }

    /// Writes to a file that nobody has begun to send.
    private func write() throws -> String {
        guard let id = any({ $0.isUpload && $0.state == .pending && !$0.wasBegun }), var transfer = model[id] else {
            return "no write"
        }
        try Data(transfer.bytes + [1]).write(to: transfer.file)
        transfer.isChanged = true
        model[id] = transfer
        return "write \(transfer.location.key)"
    }

    private func worsen() -> String {
        let codes: [ObjectError.Code] = [.interrupted, .throttled, .unreachable, .serverFault, .expiredCredentials]
        let (faults, code, abortsFail) = (below(8), codes[below(codes.count)], below(2) == 0)
        mood.withLock { ($0.faults, $0.code, $0.abortsFail) = (faults, code, abortsFail) }
        return "\(faults) faults \(code.rawValue)\(abortsFail ? ", no aborts" : "")"
    }

    /// Gives up all that is not done, and comes back.
    private func discard() async throws -> String {
        guard below(3) == 0 else { return "no discard" }
        app = try await store.switch(to: Self.backends.1, pending: .discard).partition
        for id in model.keys where model[id]?.state != .done { model[id]?.state = .cancelled }
        try await fixture.drain()
        #expect(fixture.partials.isEmpty)
        app = try await store.switch(to: Self.backends.0).partition
        return "discard"
    }

    private func drain() async throws -> String {
        try await fixture.drain()
        for id in model.keys {
            guard let transfer = model[id] else { continue }
            if transfer.state == .pending { model[id]?.wasBegun = true }
            model[id]?.state = transfer.outcome
        }
        return "drain"
    }

    /// Runs for a moment.
    private func interrupt() async throws -> String {
        let runner = fixture.runner()
        let running = Task { try await runner.run() }
        let time = below(20)
        try await Task.sleep(for: .milliseconds(time))
        running.cancel()
        try await running.value
        for id in model.keys {
            guard let transfer = model[id], transfer.state == .pending else { continue }
            model[id]?.wasBegun = true
            let state = ModelTransfer.State(try app.transfers[id].status())
            if state == transfer.outcome { model[id]?.state = transfer.outcome }
        }
        return "run for \(time) ms"
    }

    // MARK: Comparing

    /// What is other than the model says; nil where nothing is.
    func difference() throws -> String? {
        for (id, transfer) in model {
            let status = try app.transfers[id].status()
            let key = transfer.location.key
            guard ModelTransfer.State(status) == transfer.state else {
                return "\(key) is \(status.state) (\(status.failure?.code.rawValue ?? "-")), not \(transfer.state)"
            }
            let there = storage.object(transfer.location)?.bytes
            if transfer.isUpload {
                if transfer.state == .done, there != transfer.bytes { return "\(key) is another object" }
            } else {
                let file = try? Array(Data(contentsOf: transfer.file))
                if transfer.state == .done ? file != transfer.bytes : file != nil && file != transfer.bytes {
                    return "\(key) is another file"
                }
            }
        }
        let listed = try app.transfers.all().count
        return listed == model.count ? nil : "\(listed) are listed, not \(model.count)"
    }

    /// Lets everything end, after which nothing may be left.
    func finish() async throws -> String? {
        mood.withLock { $0 = Mood() }
        for id in model.keys {
            model[id]?.isRefused = false
            switch model[id]?.state {
            case .paused:
                try await app.transfers[id].resume()
                model[id]?.state = .pending
            case .failed:
                try await app.transfers[id].cancel()
                model[id]?.state = .cancelled
            default: break
            }
        }
        _ = try await drain()
        if let difference = try difference() { return difference }
        if let left = try app.transfers.all(in: [.cancelling]).first { return "\(left.id) is not cleared" }
        let uploads = storage.state.withLock { $0.uploads.count }
        return uploads == 0 && fixture.partials.isEmpty ? nil : "\(uploads) uploads and \(fixture.partials) are left"
    }
}
