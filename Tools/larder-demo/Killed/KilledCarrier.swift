import Foundation
import Larder
import LarderAWS
import ObjectServer
import RecipeServer

/// A process that carries out the transfers that are queued, until it is killed.
enum KilledCarrier {
    /// Bytes in a second, so that there is time to kill it.
    private static let bandwidth: Int64 = 100 << 20

    /// What the child does.
    static func carry(store folder: URL, storage url: URL) async throws {
        let store = try Store.open(at: folder, schemaText: [RecipeServer.schema])
        let app = try store.partition()
        try await ObjectServer.withTransport(to: url) { storage in
            var options = TransferRunner.Options()
            options.bandwidth = bandwidth
            try await TransferRunner(app, storage: storage, options: options).run()
        }
    }
}
