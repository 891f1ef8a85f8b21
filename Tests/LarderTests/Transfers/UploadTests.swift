import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Uploads")
struct UploadTests {
    @Test("A file arrives byte for byte, in one piece or in parts", arguments: [0, 1, 3999, 4000, 4001, 4096, 50_000])
    func arrives(count: Int) async throws {
        try await withDepot { depot in
            let (file, bytes) = try depot.file(bytes: count)
            let upload = try await depot.app.transfers.upload(
                file, to: Depot.location,
                options: .init(attributes: .init(contentType: "video/quicktime", metadata: ["note": "a"])))
            #expect(try upload.status().state == .pending)
            try await depot.drain()
            let status = try await upload.finished()
            let object = try #require(depot.storage.object(Depot.location))
            #expect(object.bytes == bytes)
            #expect(object.attributes == .init(contentType: "video/quicktime", metadata: ["note": "a"]))
            #expect(status.etag == object.etag && status.size == Int64(count) && status.arrived == Int64(count))
            #expect(depot.storage.calls.contains(.complete) == (count > 4000))
            #expect(depot.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("What cannot be started says so at once, and nothing is queued")
    func refused() async throws {
        try await withDepot { depot in
            let transfers = depot.app.transfers
            let missing = depot.folder.appending(path: "none")
            await expectCode(.sourceMissing) { _ = try await transfers.upload(missing, to: Depot.location) }
            await expectCode(.sourceNotFile) { _ = try await transfers.upload(depot.folder, to: Depot.location) }
            let (file, _) = try depot.file(bytes: 10)
            for key in ["", String(repeating: "k", count: 1025)] {
                await expectCode(.invalidTransfer) {
                    _ = try await transfers.upload(file, to: .init(bucket: "media", key: key))
                }
            }
            await expectCode(.invalidTransfer) { _ = try await transfers.upload(file, to: .init(bucket: "", key: "k")) }
            await expectCode(.destinationExists) { _ = try await transfers.download(Depot.location, to: file) }
            await expectCode(.destinationUnusable) {
                _ = try await transfers.download(Depot.location, to: missing.appending(path: "x"))
            }
            await expectCode(.destinationUnusable) {
                _ = try await transfers.download(Depot.location, to: depot.folder, options: .init(replacesFile: true))
            }
            #expect(try transfers.all().isEmpty)
        }
    }

    @Test("A file that is written to after it was queued is not sent, and the reason is told")
    func changed() async throws {
        try await withDepot { depot in
            let (file, _) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let (_, bytes) = try depot.file(bytes: 9000, seed: 8)
            try await depot.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(depot.storage.object(Depot.location) == nil)
            try await upload.retry()
            try await depot.drain()
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
        }
    }

    @Test("A file that changes while it is sent leaves nothing at the storage")
    func changedMeanwhile() async throws {
        try await withDepot { depot in
            let (file, _) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            depot.storage.onCall { [depot] call in
                if case .putPart(5) = call { _ = try? depot.file(bytes: 10_000, seed: 9) }
            }
            try await depot.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(depot.storage.object(Depot.location) == nil)
            #expect(depot.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A failure that may pass is tried again, and no part is sent again that the storage has", arguments: [
        ObjectError.Code.interrupted, .timedOut, .serverFault, .throttled, .checksum, .unreachable, .expiredCredentials,
    ])
    func passing(code: ObjectError.Code) async throws {
        try await withDepot { depot in
            let (file, bytes) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let failures = Countdown(3)
            depot.storage.onCall { call throws(ObjectError) in
                if case .putPart(let number) = call, number % 3 == 0, failures.take() {
                    throw ObjectError(code, "for a test")
                }
            }
            try await depot.drain()
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
            let sent = depot.storage.calls.compactMap { if case .putPart(let number) = $0 { number } else { nil } }
            #expect(sent.sorted() == Array(1...10))
            #expect(try upload.status().attempts > 1)
        }
    }

    @Test("What will not go better fails with its reason, and nothing is left", arguments: [
        ObjectError.Code.accessDenied, .noSuchBucket, .rejected, .wrongRegion,
    ])
    func final(code: ObjectError.Code) async throws {
        try await withDepot { depot in
            let (file, _) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            depot.storage.onCall { call throws(ObjectError) in
                if case .putPart(7) = call { throw ObjectError(code, "for a test") }
            }
            try await depot.drain()
            await expectCode(.init(rawValue: code.rawValue)) { try await upload.finished() }
            #expect(try upload.status().arrived == 0)
            #expect(depot.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A server that always fails is given up after so many failures in a row")
    func givenUp() async throws {
        try await withDepot { depot in
            let (file, _) = try depot.file(bytes: 100)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            depot.storage.onCall { _ throws(ObjectError) in throw ObjectError(.serverFault, "for a test") }
            try await depot.drain { $0.maximumFaults = 4 }
            await expectCode(.init(rawValue: "object.serverFault")) { try await upload.finished() }
            #expect(try upload.status().attempts == 4)
        }
    }

    @Test("A lost answer to the last step is no second upload: the object tells that it is there")
    func lostCompletion() async throws {
        try await withDepot { depot in
            let (file, bytes) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let failures = Countdown(1)
            depot.storage.onAnswer { call throws(ObjectError) in
                if call == .complete, failures.take() { throw ObjectError(.interrupted, "for a test") }
            }
            try await depot.drain()
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
            #expect(depot.storage.calls.count { $0 == .complete } == 1)
            #expect(depot.storage.calls.count { if case .putPart = $0 { true } else { false } } == 10)
        }
    }

    @Test("Parts whose answers were lost are found at the storage and not sent again", arguments: [false, true])
    func lostParts(tellsChecksums: Bool) async throws {
        try await withDepot(tellsChecksums: tellsChecksums) { depot in
            let (file, bytes) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let failures = Countdown(1)
            depot.storage.onAnswer { call throws(ObjectError) in
                if case .putPart(4) = call, failures.take() { throw ObjectError(.interrupted, "for a test") }
            }
            try await depot.drain { $0.connectionsPerHost = 1 }
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
            #expect(depot.storage.calls.count { $0 == .putPart(4) } == 1)
        }
    }

    @Test("An upload that somebody has aborted begins anew")
    func aborted() async throws {
        try await withDepot { depot in
            let (file, bytes) = try depot.file(bytes: 10_000)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            let failures = Countdown(1)
            depot.storage.onCall { [storage = depot.storage] call in
                if case .putPart(6) = call, failures.take() { storage.state.withLock { $0.uploads = [:] } }
            }
            try await depot.drain()
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
            #expect(depot.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("No more connections than may be, and those of the highest priority first")
    func bounds() async throws {
        try await withDepot { depot in
            for (name, priority) in [("low", 0), ("high", 5), ("middle", 1)] {
                let (file, _) = try depot.file(name, bytes: 100)
                _ = try await depot.app.transfers.upload(
                    file, to: .init(bucket: "media", key: name), options: .init(priority: priority))
            }
            try await depot.drain { $0.maximumTransfers = 1 }
            #expect(depot.storage.calls == [.put("high"), .put("middle"), .put("low")])
            let (file, _) = try depot.file("large", bytes: 50_000)
            _ = try await depot.app.transfers.upload(file, to: Depot.location)
            try await depot.drain { $0.connectionsPerHost = 3 }
            #expect(depot.storage.state.withLock { $0.mostBusy } <= 3)
        }
    }
}
