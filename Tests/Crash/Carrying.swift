import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization

/// Carries out what is queued in a store, notes in a ledger what it asks of the storage, and ends when nothing is left
/// to be done.
struct Carrying {
    let folder: URL
    let endpoint: URL
    let keys: Credentials.CloudCredentials
    let ledger: Ledger

    func run(killedAfter step: (TransferRunner.KillPoint, Int)?) async throws {
        let count = Mutex(step?.1 ?? 0)
        let store = try Store.open(at: folder, schema: try Schema(parsing: "type Query { nothing: Int }"))
        let app = try store.partition()
        var storageOptions = S3Transport.Options()
        storageOptions.endpoint = endpoint
        try await S3Transport.withTransport(
            region: StorageServer.region, credentials: { [keys] _ in keys }, options: storageOptions
        ) { storage in
            var options = TransferRunner.Options()
            options.multipartThreshold = 4 << 10
            options.partSize = 4 << 10
            options.idle = .seconds(2)
            options.timeout = .seconds(5)
            options.connectionsPerHost = 3
            options.maximumFaults = 1000
            options.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
            options.reached = { made in
                guard made == step?.0 else { return }
                let mustDie = count.withLock { count in
                    count -= 1
                    return count == 0
                }
                if mustDie { kill(getpid(), SIGKILL) }
            }
            try await TransferRunner(app, storage: RecordingTransport(storage, ledger), options: options).drain()
        }
        try store.close()
    }
}
