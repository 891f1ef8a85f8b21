import Foundation
import LarderOperations
import Logging

extension PartitionCore {
    /// Does something; where a damaged row prevents it, sets that aside and does it once more.
    func settingDamagedAside<Result>(_ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch {
            guard try await hasSetAside(after: error) else { throw error }
            return try await body()
        }
    }

    /// Sets aside the mutations and transfers of this partition that cannot be read, where an error says that there are
    /// such, and tells of each: the others go on.
    ///
    /// - Returns: Whether there were any. Where there were none, the error is of something else, and stands.
    func hasSetAside(after error: any Error) async throws(LarderError) -> Bool {
        guard LarderError(translating: error).code.rawValue == OperationsError.Code.damagedRow.rawValue else {
            return false
        }
        let database = try operationsStore.database()
        let rows: [DamagedRow]
        do { rows = try await database.setAsideDamagedRows(in: name, now: now()) } catch {
            if error.code == .damagedRow { return false }
            throw LarderError(error)
        }
        for row in rows {
            logger.error("a damaged row of larder.sqlite was set aside", metadata: ["row": "\(row)"])
        }
        guard !rows.isEmpty else { return false }
        try layers.reload(database.mutations)
        operationsStore.changeSignal.notify()
        try transfers.noteOthers(self)
        return true
    }
}
