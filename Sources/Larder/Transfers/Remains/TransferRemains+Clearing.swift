package import Foundation
import LarderFiles
package import LarderOperations

extension TransferRemains {
    /// What has become of them.
    package struct Cleared: Sendable {
        package var files: [File] = []
        /// Transfers whose uploads the storage has forgotten.
        package var uploads: [StoredTransfer] = []
        /// Transfers of which nothing is left, and which are noted so.
        package var transfers: [StoredTransfer] = []
        package var left: [Left] = []
    }

    /// Something that stays, and why.
    package struct Left: Sendable {
        package enum Reason: Sendable {
            /// A runner of its partition works, and clears it away itself.
            case runnerWorks
            /// No storage was named, or another than the transfer's.
            case noStorage
            /// The storage was asked to begin an upload, and its name did not arrive.
            case noName
            case object(ObjectError)
            case local(LarderError)
        }

        package var transfer: UUID
        package var reason: Reason

        package init(transfer: UUID, reason: Reason) {
            self.transfer = transfer
            self.reason = reason
        }
    }

    /// Removes the files, has the storage forget the uploads, and notes of which transfers nothing is left.
    ///
    /// Of transfers that a runner could take up again nothing is touched without the runner's right.
    ///
    /// - Parameters:
    ///   - storage: Nil where there is none to ask.
    ///   - name: The storage's; nil: it is the one that has none.
    ///   - timeout: How long each exchange may take.
    /// - Throws: `OperationsError` where the rows cannot be read or written. What could not be removed is in the
    ///   result.
    package func clear(
        _ table: TransferTable?, storage: (any ObjectTransport)?, named name: String? = nil, timeout: Duration,
        now: () -> Date = { Date() }
    ) async throws -> Cleared {
        var cleared = removeStrayFiles()
        guard let table else { return cleared }
        for (partition, transfers) in Dictionary(grouping: transfers, by: \.partition).sorted(by: { $0.key < $1.key }) {
            let lock = try RunnerLock(
                folder: folder, partition: partition, suffix: TransferRunner.lockSuffix, system)
            guard try lock.tryAcquire() else {
                cleared.left += transfers.map { Left(transfer: $0.id, reason: .runnerWorks) }
                continue
            }
            defer { lock.close() }
            for transfer in transfers {
                // It may have been retried since.
                guard let found = try table.find(transfer.id), [.failed, .cancelling].contains(found.state) else {
                    continue
                }
                let mine = files.filter { $0.transfer == found.id }
                let isUploadGone = await abort(found, found.storage == name ? storage : nil, timeout, &cleared)
                let areFilesGone = mine.allSatisfy { remove($0, &cleared) }
                guard isUploadGone, areFilesGone, removeCopy(of: found, &cleared) else { continue }
                do throws(OperationsError) {
                    if found.state == .failed {
                        try await table.forgetUpload(of: found.id)
                    } else {
                        try await table.cleared(found.id, now: now())
                    }
                    cleared.transfers.append(found)
                } catch {
                    if ![.wrongState, .notFound].contains(error.code) { throw error }
                }
            }
        }
        return cleared
    }

    /// Removes the files whose transfers are over for good or being cancelled, or not known. It takes no right: should
    /// a process that had one of them under way still write to it, the file is of no use to that process either.
    func removeStrayFiles() -> Cleared {
        var cleared = Cleared()
        for file in files where file.state != .failed { remove(file, &cleared) }
        return cleared
    }

    /// - Returns: Whether there is none any more.
    private func abort(
        _ transfer: StoredTransfer, _ storage: (any ObjectTransport)?, _ timeout: Duration, _ cleared: inout Cleared
    ) async -> Bool {
        guard transfer.hasUpload, transfer.isNameable else { return true }
        guard let upload = transfer.multipartUpload else {
            cleared.left.append(Left(transfer: transfer.id, reason: .noName))
            return false
        }
        guard let storage else {
            cleared.left.append(Left(transfer: transfer.id, reason: .noStorage))
            return false
        }
        do throws(ObjectError) {
            try await storage.abortUpload(upload, within: timeout)
            cleared.uploads.append(transfer)
            return true
        } catch {
            cleared.left.append(Left(transfer: transfer.id, reason: .object(error)))
            return false
        }
    }

    /// - Returns: Whether there is none beside a download's destination.
    private func removeCopy(of transfer: StoredTransfer, _ cleared: inout Cleared) -> Bool {
        guard transfer.kind == .download else { return true }
        do throws(LarderError) { try DestinationFile(of: transfer, system).removeCopy(of: transfer.id) } catch {
            cleared.left.append(Left(transfer: transfer.id, reason: .local(error)))
            return false
        }
        return true
    }

    /// - Returns: Whether it is there no more.
    @discardableResult
    private func remove(_ file: File, _ cleared: inout Cleared) -> Bool {
        do throws(LarderError) {
            // Whose transfer has just ended removes it as well.
            if try PartialFile.remove(file.transfer, in: folder, system) { cleared.files.append(file) }
            return true
        } catch {
            cleared.left.append(Left(transfer: file.transfer, reason: .local(error)))
            return false
        }
    }
}
