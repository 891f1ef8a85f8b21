import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Uploads that have not arrived when everything else goes", .timeLimit(.minutes(10)))
struct UnsentUploadTests {
    private func upload(_ depot: Depot, _ key: String = "a") async throws -> Transfer {
        let (file, _) = try depot.file(bytes: 100)
        return try await depot.app.transfers.upload(file, to: ObjectLocation(bucket: "media", key: key))
    }

    private func download(_ depot: Depot) async throws -> Transfer {
        try await depot.app.transfers.download(Depot.location, to: depot.folder.appending(path: "copy"))
    }

    @Test("Nothing is removed while nobody said what becomes of them")
    func refused() async throws {
        try await withDepot { depot in
            let upload = try await upload(depot)
            for isErased in [false, true] {
                let error = await #expect(throws: LarderError.self) {
                    try await isErased ? depot.app.erase() : depot.app.clear()
                }
                #expect(error?.code.rawValue == "operations.unsentWork")
                #expect(error?.message.contains("1 uploads have not arrived") == true)
            }
            #expect(try upload.status().state == .pending)
            try await depot.drain()
            #expect(try await upload.finished().state == .done)
            try await depot.app.clear()
            try await depot.app.erase()
            #expect(try depot.app.transfers.all().isEmpty)
        }
    }

    @Test("One that has failed has not arrived either")
    func failed() async throws {
        try await withDepot { depot in
            depot.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "for a test") }
            let upload = try await upload(depot)
            try await depot.drain()
            #expect(try upload.status().state == .failed)
            let error = await #expect(throws: LarderError.self) { try await depot.app.clear() }
            #expect(error?.code.rawValue == "operations.unsentWork")
        }
    }

    @Test("Those that are kept are sent")
    func kept() async throws {
        try await withDepot { depot in
            let upload = try await upload(depot)
            try await depot.app.erase(unsent: .keep)
            try await depot.drain()
            #expect(try await upload.finished().state == .done)
            let next = try await self.upload(depot, "b")
            try await depot.app.erase(unsent: .keep)
            #expect(try depot.app.transfers.all() == [next])
        }
    }

    @Test("Those that are discarded are given up, and downloads are not; erasing gives up both, and forgets them")
    func discarded() async throws {
        try await withDepot { depot in
            let (first, second) = (try await upload(depot), try await download(depot))
            try await depot.app.clear(unsent: .discard)
            #expect(try first.status().state == .cancelled)
            #expect(try second.status().state == .pending)
            let third = try await upload(depot, "b")
            let waiting = Task { try await third.finished() }
            try await depot.app.erase(unsent: .discard)
            #expect(try depot.app.transfers.all().isEmpty)
            await #expect(throws: LarderError.self) { try await waiting.value }
            try await depot.drain()
            #expect(depot.storage.calls.isEmpty)
        }
    }

    @Test("What one has left at the storage is cleared away before it is forgotten")
    func traces() async throws {
        try await withDepot { depot in
            let isHeld = Flag()
            depot.storage.onCall { call throws(ObjectError) in
                guard case .putPart(3) = call else { return }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(300)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            let (file, _) = try depot.file(bytes: 20_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let running = Task { try await depot.runner { $0.connectionsPerHost = 1 }.run() }
            await isHeld.wait()
            try await depot.app.erase(unsent: .discard)
            await #expect(throws: LarderError.self) { try await upload.finished() }
            try await eventually { depot.storage.state.withLock { $0.uploads.isEmpty } }
            try await eventually { try depot.app.transfers.all().isEmpty }
            running.cancel()
            try await running.value
        }
    }

    @Test("Who waits is told as well where another process has erased it")
    func others() async throws {
        try await withDepot { depot in
            let download = try await download(depot)
            let progress = Task { for await _ in download.progress {} }
            let waiting = Task { try await download.finished() }
            try await Task.sleep(for: .milliseconds(300))
            try await OperationsDatabase.using(depot.folder.appending(path: "store")) { other in
                _ = try await other.transfers.erase(in: Store.unnamedPartition, keepsQueued: false, now: Date())
            }
            await expectCode(.unknownTransfer) { _ = try await waiting.value }
            await progress.value
        }
    }
}
