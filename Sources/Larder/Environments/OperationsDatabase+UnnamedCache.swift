package import Foundation
package import LarderOperations
import LarderRecords

extension OperationsDatabase {
    /// The environments of a store, to which a cache may be known that was filled before any environment was named.
    ///
    /// `larder.sqlite` alone does not know of it: nothing has to be kept there before something is queued.
    package func environments(of store: URL, _ options: Store.Options) throws -> EnvironmentTable {
        let cache = CacheFolder(store: store, partition: Store.unnamedPartition, options)
        let isThere = try cache.hasGenerations() && !cache.isForgotten()
        return environments.knowing(unnamed: isThere ? Store.unnamedPartition : nil)
    }
}
