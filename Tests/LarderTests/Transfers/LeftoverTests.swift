import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("What a runner has left, and the next one finds")
struct LeftoverTests {
    @Test("Partial files of transfers that are not known are removed; what goes on and what is no transfer's stays")
    func strayFiles() async throws {
        try await withDepot { depot in
            let paused = try await depot.app.transfers.download(
                Depot.location, to: depot.folder.appending(path: "copy"))
            try await paused.pause()
            let folder = depot.folder.appending(path: "store/transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let kept = ["\(paused.id).part", "notes.part", "notes"]
            for name in kept + ["\(TransferID(UUID())).part"] {
                try Data([1]).write(to: folder.appending(path: name))
            }
            try await depot.drain()
            #expect(Set(depot.partials) == Set(kept))
        }
    }

    @Test("An upload that could not be aborted when its transfer failed is aborted by the next runner")
    func failedUpload() async throws {
        try await withDepot { depot in
            let (file, _) = try depot.file(bytes: 20_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            depot.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(3): throw ObjectError(.accessDenied, "not here")
                case .abort: throw ObjectError(.unreachable, "away")
                default: break
                }
            }
            try await depot.drain()
            await expectCode(.init(rawValue: "object.accessDenied")) { try await upload.finished() }
            #expect(depot.storage.state.withLock { $0.uploads.count } == 1)

            depot.storage.onCall { _ in }
            let runner = depot.runner()
            let task = Task { try await runner.run() }
            try await eventually { depot.storage.state.withLock { $0.uploads.isEmpty } }
            task.cancel()
            try await task.value
            #expect(try upload.status().state == .failed)
        }
    }
}
