package import Foundation
package import LarderOperations

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What transfers that do not go on have left behind: partial files in the store's folder, and uploads in parts at the
/// storage. A runner clears these away when it can; here is what it could not.
///
/// Nothing is looked for at the storage: an upload that no transfer has noted is somebody else's.
package struct TransferRemains: Sendable {
    /// A partial file that nobody goes on with.
    package struct File: Sendable, Hashable {
        package var url: URL
        /// What it takes on the volume.
        package var bytes: Int64
        /// Whose it is by its name.
        package var transfer: UUID
        /// Nil where nothing is known of that transfer.
        package var state: TransferState?
    }

    /// By their names.
    package private(set) var files: [File] = []
    /// Transfers that have failed or are being cancelled, and have left something at the storage or a partial file, or
    /// are to be noted as cancelled only.
    package private(set) var transfers: [StoredTransfer] = []

    let folder: URL

    /// Looks what there is.
    ///
    /// - Parameters:
    ///   - folder: The store's.
    ///   - table: Nil where nothing was ever queued.
    package init(in folder: URL, _ table: TransferTable?) throws(OperationsError) {
        self.folder = folder
        // First the files: the rows of all that are made later are there then.
        let found = Self.partialFiles(in: folder)
        for var file in found {
            file.state = try table?.find(file.transfer)?.state
            if file.state.map(Self.mayGoOn) ?? false { continue }
            files.append(file)
        }
        let named = Set(files.map(\.transfer))
        transfers = try table?.list(states: [.failed, .cancelling]).filter { transfer in
            transfer.state == .cancelling || transfer.hasUpload || named.contains(transfer.id)
        } ?? []
    }

    private static func mayGoOn(_ state: TransferState) -> Bool {
        switch state {
        case .pending, .running, .paused: true
        // A failed one begins anew when it is retried: nothing of it is kept by a runner either.
        case .failed, .cancelling, .done, .cancelled: false
        }
    }

    /// Regular files that are named as a transfer's.
    private static func partialFiles(in folder: URL) -> [File] {
        let transfers = PartialFile.folder(of: folder)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: transfers.path)) ?? []
        return names.sorted().compactMap { name in
            guard name.hasSuffix(PartialFile.suffix),
                let id = UUID(uuidString: String(name.dropLast(PartialFile.suffix.count)))
            else { return nil }
            let url = transfers.appending(path: name)
            var status = stat()
            guard lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            return File(url: url, bytes: Int64(status.st_blocks) * 512, transfer: id)
        }
    }
}

extension StoredTransfer {
    /// Whether the storage has begun an upload in parts for it, or was asked to.
    var hasUpload: Bool { upload != nil || uploadsBefore != nil }
}
