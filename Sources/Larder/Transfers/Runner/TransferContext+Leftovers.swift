import Foundation
import LarderOperations
import Logging

/// Clears away what transfers have left behind, at the storage and in the store's folder.
extension TransferContext {
    private static let sweepPause = Duration.seconds(60)

    /// Removes now and then, in all partitions, the files of transfers that are over or not there any more, as of an
    /// environment that was forgotten. Transfers that a switch gave up belong to a partition that may have no runner
    /// again: no other runner goes on with them, and what they left only here is cleared away without one.
    func sweep() async {
        repeat {
            do {
                let remains = try TransferRemains(in: core.folder, table, core.files)
                for left in remains.removeStrayFiles().left {
                    core.logger.warning(
                        "a partial file that belongs to no transfer cannot be removed",
                        metadata: [
                            "transfer": "\(left.transfer)", "reason": "\(left.reason)",
                        ])
                }
                for transfer in remains.transfers where transfer.state == .cancelling && transfer.kind == .download {
                    guard transfer.partition != core.name, await isCleared(transfer) else { continue }
                    try await table.ifStillOurs { try await $0.cleared(transfer.id, now: core.now()) }
                }
            } catch {
                core.logger.warning(
                    "what transfers have left behind cannot be looked for",
                    metadata: [
                        "error": "\(error)"
                    ])
            }
            try? await Task.sleep(for: Self.sweepPause)
        } while !Task.isCancelled
    }

    /// Removes a transfer's partial file, and has the storage forget its parts.
    ///
    /// - Returns: Whether nothing is left.
    func isCleared(_ transfer: StoredTransfer) async -> Bool {
        do {
            if transfer.kind == .download { try PartialFile.remove(transfer.id, in: core.folder, core.files) }
            let now = try table.find(transfer.id) ?? transfer
            if transfer.kind == .download { try DestinationFile(of: transfer, core.files).removeCopy(of: transfer.id) }
            do {
                if !now.isNameable {
                    core.logger.warning("a transfer has names that no storage has", metadata: ["transfer": "\(now.id)"])
                } else if let upload = now.multipartUpload {
                    try await storage.abortUpload(upload, within: .until(deadline))
                } else if let before = now.uploadsBefore {
                    try await abortUnnoted(of: now.location, after: before)
                }
            } catch let error as ObjectError where error.code == .noSuchBucket {
                // With the bucket all that was in it is gone.
            }
            return true
        } catch {
            core.logger.warning(
                "what a transfer has left behind cannot be cleared away yet",
                metadata: [
                    "transfer": "\(transfer.id)", "error": "\(error)",
                ])
            return false
        }
    }

    /// Aborts what the storage began when this program was killed before it noted the name: uploads of just this key
    /// that were not there before. Another program that began one at the same moment has to begin anew.
    ///
    /// The storage has listed uploads before. Where it refuses to now, that is an error: an upload that it began would
    /// be taken for one that was there before, or be forgotten.
    func abortUnnoted(of location: ObjectLocation, after before: [String]) async throws {
        let found = try await listedUploads(of: location)
        // Uploads that were noted while the storage was asked are another transfer's.
        let known = try table.list(in: core.name, states: [.pending, .running, .paused, .failed, .cancelling])
            .compactMap(\.upload)
        let others = Set(before).union(known)
        for id in found where !others.contains(id) {
            try await storage.abortUpload(MultipartUpload(location: location, id: id), within: .until(deadline))
        }
    }

    /// The same once more: the storage may have begun what it was asked for only after it was looked for.
    func abortLate(of location: ObjectLocation, after before: [String]) async {
        do { try await abortUnnoted(of: location, after: before) } catch {
            core.logger.warning(
                "an upload that the storage may have begun late cannot be looked for",
                metadata: [
                    "location": "\(location)", "error": "\(error)",
                ])
        }
    }

    /// Has the storage abort an upload that it says it does not know, before its name is forgotten here: it may say so
    /// for a moment only, and keep the parts. A user who may not abort could never begin anew otherwise: then the name
    /// is noted apart from the transfer, and the abort tried again later.
    func abortForgotten(_ upload: MultipartUpload?, of transfer: StoredTransfer) async throws {
        guard let upload else { return }
        do throws(ObjectError) { try await storage.abortUpload(upload, within: .until(deadline)) } catch {
            guard error.code == .accessDenied else { throw error }
            core.logger.warning(
                "an upload that the storage does not know may not be aborted either",
                metadata: [
                    "location": "\(upload.location)", "upload": "\(upload.id)", "error": "\(error)",
                ])
            try await table.note(transfer.attempt, [.uploadLeft])
        }
    }

    /// The uploads in parts of just this key that the storage has. Keys are bytes: keys that only look alike, as with
    /// accents that are characters of their own, are others.
    private func listedUploads(of location: ObjectLocation) async throws(ObjectError) -> [String] {
        try await storage.uploads(
            in: location.bucket, region: location.region, prefix: location.key, within: .until(deadline)
        ).filter { $0.location.key.utf8.elementsEqual(location.key.utf8) }.map(\.id)
    }

    /// The same; nil where the storage does not tell this user, or does not list uploads at all: an upload that was
    /// begun and whose name did not arrive cannot be found there then.
    func uploads(of location: ObjectLocation) async throws(ObjectError) -> [String]? {
        do throws(ObjectError) { return try await listedUploads(of: location) } catch {
            guard [.accessDenied, .rejected, .notFound].contains(error.code) else { throw error }
            return nil
        }
    }
}
