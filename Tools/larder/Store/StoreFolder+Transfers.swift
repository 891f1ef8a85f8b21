import Foundation
import LarderCommandLine
import LarderOperations

extension StoreFolder {
    /// Runs `body` with the transfers, and closes what they are in; nil where nothing was ever queued.
    func withTransfers<Result>(
        _ access: Access, _ output: Output, _ body: (TransferTable) async throws -> Result
    ) async throws -> Result? {
        try await withOperations(access, output) { try await body($0.transfers) }
    }
}
