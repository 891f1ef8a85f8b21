import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization

// A program that the tests start, stop and kill while it carries transfers out.
//
//     larder-transfer-crash STORE ENDPOINT KEY SECRET LEDGER [STEP N]
//
// It carries out what is queued in the store, notes in the ledger what it asks of the storage, and ends when nothing is
// left to be done. It kills itself after a step has been made so many times.

let arguments = CommandLine.arguments
guard arguments.count >= 6, let endpoint = URL(string: arguments[2]) else { exit(2) }
endWithStandardInput()

let folder = URL(filePath: arguments[1])
let ledger = try Ledger(file: URL(filePath: arguments[5]))
let step = arguments.count > 7 ? TransferStep(rawValue: arguments[6]) : nil
let count = Mutex(arguments.count > 7 ? Int(arguments[7]) ?? 1 : 0)

let store = try Store.open(at: folder, schema: try Schema(parsing: "type Query { nothing: Int }"))
let app = try store.partition()
var storageOptions = S3Transport.Options()
storageOptions.endpoint = endpoint
let keys = Credentials.CloudCredentials(accessKeyID: arguments[3], secretAccessKey: arguments[4], expires: nil)
try await S3Transport.withTransport(
    region: StorageServer.region, credentials: { _ in keys }, options: storageOptions
) { storage in
    var options = TransferRunner.Options()
    options.multipartThreshold = 4 << 10
    options.partSize = 4 << 10
    options.idle = .seconds(2)
    options.timeout = .seconds(5)
    options.connectionsPerHost = 3
    options.maximumFaults = 1000
    options.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
    options.afterStep = { made in
        guard made == step else { return }
        let mustDie = count.withLock { count in
            count -= 1
            return count == 0
        }
        if mustDie { kill(getpid(), SIGKILL) }
    }
    try await TransferRunner(app, storage: RecordingTransport(storage, ledger), options: options).drain()
}
try store.close()
