package import Foundation
package import LarderOperations
package import LarderRecords
import Logging

extension Store {
    /// The name of the partition of a program that names no environment.
    package static let unnamedPartition = "main"

    /// Where the record cache of a partition is.
    package static func cacheFolder(of folder: URL, partition: String = unnamedPartition) -> URL {
        folder.appending(path: "records/\(partition)")
    }

    /// Opens the record cache of a store alone, for work on it that needs no schema.
    package static func openCache(
        at folder: URL, partition: String = unnamedPartition, options: Options = Options()
    ) throws(LarderError) -> RecordCache {
        do {
            return try RecordCache(
                folder: cacheFolder(of: folder, partition: partition).path, stamp: partition,
                options: options.records(of: folder))
        } catch { throw LarderError(error) }
    }
}

extension Store {
    /// What the store wants done, which is made if there is nothing yet.
    package func operationsDatabase() throws(LarderError) -> OperationsDatabase { try operationsStore.database() }
}

extension Store.Options {
    /// Keeps the library's diagnostics away from a program's own output.
    package mutating func silence() { logger = Logger(label: label, factory: { _ in SwiftLogNoOpLogHandler() }) }
}
