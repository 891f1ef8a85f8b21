package import Foundation
package import LarderFiles
package import LarderOperations

/// What transfers that do not go on have left behind: partial files in the store's folder, and uploads in parts at the
/// storage. A runner clears these away when it can; here is what it could not.
///
/// Nothing is looked for at the storage: an upload that no transfer has noted belongs to another client.
package struct TransferRemains: Sendable {
    /// A partial file that no transfer goes on with.
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
    let system: FileSystem

    /// Looks what there is.
    ///
    /// - Parameters:
    ///   - folder: The store's.
    ///   - table: Nil where nothing was ever queued.
    /// - Throws: Also what keeps the system from telling which files there are.
    package init(
        in folder: URL, _ table: TransferTable?, _ system: FileSystem = FileSystem()
    ) throws(OperationsError) {
        (self.folder, self.system) = (folder, system)
        // First the files: the rows of all that are made later are there then.
        let partial: [(url: URL, transfer: UUID, bytes: Int64)]
        do throws(FileError) { partial = try PartialFile.all(in: folder, system) } catch { throw .translated(error) }
        for found in partial {
            let state = try table?.find(found.transfer)?.state
            if state.map(Self.mayGoOn) ?? false { continue }
            files.append(File(url: found.url, bytes: found.bytes, transfer: found.transfer, state: state))
        }
        let named = Set(files.map(\.transfer))
        transfers =
            try table?.remains(named: named).filter { transfer in
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
}
