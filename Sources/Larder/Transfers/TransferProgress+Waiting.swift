import Foundation
import LarderFiles
import LarderOperations

extension PartitionCore {
    /// How far a transfer has come, and why it waits, as far as this process knows.
    func progress(of status: TransferStatus) -> TransferProgress {
        var progress = transfers.progress(of: status)
        if status.state == .pending { progress.waiting = waitingReason(of: status) }
        return progress
    }

    private func waitingReason(of status: TransferStatus) -> TransferProgress.WaitingReason? {
        switch runners.state(of: TransferRunner.lockSuffix) {
        case .offline: return .noNetwork
        case .waitingForSignIn: return .notSignedIn
        case .stopped, .suspended: if !isRunElsewhere { return .noRunner }
        case .running, .standingBy, .unusableServer: break
        }
        if status.failure?.code == .noStorage {
            return .noStorage(named: status.location.storage)
        }
        // To whole seconds, so that the time stays the same from one look to the next.
        switch transfers.hold(on: status.location) {
        case .refused: return .notSignedIn
        case .host(let left):
            let end = now().timeIntervalSince1970 + left.seconds
            return .throttled(until: Date(timeIntervalSince1970: end.rounded()))
        case nil: break
        }
        if let end = status.handedOver.flatMap({ StoredTransfer.handOverEnd($0, now()) }) {
            return .handedOver(until: end)
        }
        guard let time = status.notBefore, time > now() else { return nil }
        let isThrottled = status.failure?.code == .objectThrottled
        return isThrottled ? .throttled(until: time) : .retry(at: time)
    }

    /// Whether another process carries the transfers out: it has the lock.
    private var isRunElsewhere: Bool {
        let path = folder.appending(path: "locks").appending(path: name + TransferRunner.lockSuffix).path
        guard let lock = try? LockFile(existing: path, in: files) else { return false }
        defer { lock.close() }
        return (try? lock.tryLock(.shared)) == false
    }
}
