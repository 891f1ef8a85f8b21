import ArgumentParser
import Foundation
import Larder
import LarderAWS
import LarderCommandLine
import LarderOperations

extension Transfers {
    struct CollectGarbage: Verb {
        static let configuration = CommandConfiguration(
            commandName: "gc",
            abstract: "Tells what transfers have left behind that do not go on; removes it with --write.",
            discussion: """
                Partial files in the store's folder that belong to no transfer that may go on, and uploads in parts \
                that the storage has begun for transfers that have failed or are being cancelled. A failed one begins \
                anew when it is retried. Uploads are aborted where the storage's region is named, with the keys of the \
                environment variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. An upload that \
                no transfer of this store has noted is never touched.
                """)
        static let name = "transfers gc"

        @OptionGroup var store: StoreOptions
        @OptionGroup var permission: WritePermission
        @OptionGroup var storage: StorageOptions
        @OptionGroup var device: DeviceOptions

        func perform(_ output: Output) async throws {
            let storage = try storage.access()
            let folder = try store.folder()
            if permission.write {
                let cleared = try await folder.withRemains(.writing, output) { remains, transfers in
                    if storage != nil, let transfers { _ = try device.tokens(for: transfers.database) }
                    return try await remains.clear(transfers, storage)
                }
                try output.result(cleared.json, text: cleared.lines)
                for left in cleared.left { output.note(left.text) }
                if cleared.left.contains(where: \.isFailure) {
                    throw Ended(.failure, hint: "run it again once the storage and the files can be reached")
                }
            } else {
                let remains = try await folder.withRemains(.reading, output) { remains, _ in remains }
                try output.result(remains.json, text: remains.lines)
                if !remains.isEmpty { output.note("nothing was removed; --write does it") }
            }
        }
    }
}

extension StoreFolder {
    /// Runs `body` with what transfers have left behind.
    fileprivate func withRemains<Result>(
        _ access: Access, _ output: Output, _ body: (TransferRemains, TransferTable?) async throws -> Result
    ) async throws -> Result {
        let result = try await withTransfers(access, output) { transfers in
            try await body(try TransferRemains(in: url, transfers), transfers)
        }
        if let result { return result }
        return try await body(try TransferRemains(in: url, nil), nil)
    }
}

extension TransferRemains {
    fileprivate func clear(_ transfers: TransferTable?, _ storage: StorageAccess?) async throws -> Cleared {
        guard let storage else { return try await clear(transfers, storage: nil, timeout: .zero) }
        return try await storage.withTransport { transport in
            try await clear(transfers, storage: transport, named: storage.name, timeout: storage.timeout)
        }
    }
}
