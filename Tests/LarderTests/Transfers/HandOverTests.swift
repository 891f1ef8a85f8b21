import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Files that are handed over to a background executor", .timeLimit(.minutes(10)))
struct HandOverTests {
    /// Forwards to its base, and calls `tell` before each hand-over.
    private struct TellingBackground: BackgroundTransport {
        let base: ScriptedBackground
        let tell: @Sendable () -> Void

        func known() async throws(ObjectError) -> Set<UUID> { base.uploads }

        func upload(
            _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
        ) async throws(ObjectError) {
            tell()
            try await base.upload(file, as: id, to: location, attributes, crc32c: crc32c)
        }

        func download(
            _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
        ) async throws(ObjectError) {
            tell()
            try await base.download(location, etag: etag, as: id, to: file)
        }

        func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? { try await base.outcome(of: id) }

        func end(_ id: UUID) async throws(ObjectError) { try await base.end(id) }
    }

    @Test(
        "An executor gets a file after its hand-over is on disk, so that no other runner takes the transfer up",
        arguments: [true, false])
    func noted(isUpload: Bool) async throws {
        try await withTransferFixture { fixture in
            let transfer = try await fixture.transfer(isUpload: isUpload, bytes: 100)
            let isNoted = Mutex<[Bool]>([])
            let background = TellingBackground(base: ScriptedBackground(fixture.storage)) {
                let time = (try? transfer.status())?.handedOver
                isNoted.withLock { $0.append(time != nil) }
            }
            try await fixture.runner { $0.background = background }.run(until: { isNoted.withLock { !$0.isEmpty } })
            #expect(isNoted.withLock { $0 } == [true])
        }
    }

    /// Knows transfers of which the store knows nothing, and does not end the one that it is to end first.
    private final class StubbornBackground: BackgroundTransport {
        private let state = Mutex((known: Set((0..<5).map { _ in UUID() }), kept: UUID?.none))
        let isLeftWithOne = Flag()

        func known() async throws(ObjectError) -> Set<UUID> { state.withLock { $0.known } }

        func upload(
            _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
        ) async throws(ObjectError) {}

        func download(
            _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
        ) async throws(ObjectError) {}

        func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? { nil }

        func end(_ id: UUID) async throws(ObjectError) {
            let isKept = state.withLock { state in
                state.kept = state.kept ?? id
                if state.kept != id { state.known.remove(id) }
                if state.known.count == 1 { isLeftWithOne.set() }
                return state.kept == id
            }
            if isKept { throw ObjectError(.unreachable, "as the test says") }
        }
    }

    @Test("A transfer that its executor does not break off keeps no other one from being broken off")
    func brokenOffBesideAnother() async throws {
        try await withTransferFixture { fixture in
            let background = StubbornBackground()
            try await fixture.runner { $0.background = background }.whileRunning {
                await background.isLeftWithOne.wait()
                #expect(background.isLeftWithOne.isSet)
            }
        }
    }

    @Test("An upload is handed over again when the storage has no checksum of its equally long object")
    func untold() async throws {
        try await withTransferFixture(MemoryStorage(isSealed: true)) { fixture in
            let (file, bytes) = try fixture.file(bytes: 100)
            fixture.storage.keep(Array(bytes.reversed()), at: TransferFixture.location)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let background = ScriptedBackground(fixture.storage)
            for times in 1...2 {
                try await handOver(upload, to: background, fixture, times: times)
                #expect(background.handedOver.count == times)
                background.forget(upload.id.uuid)
            }
        }
    }

    /// Runs a runner until the executor has had `times` hand-overs, or the upload has ended.
    private func handOver(
        _ upload: Transfer, to background: ScriptedBackground, _ fixture: TransferFixture, times: Int,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let runner = fixture.runner { $0.background = background }
        try await runner.run(
            sourceLocation: sourceLocation,
            until: { try background.handedOver.count == times || upload.status().isEnded })
    }

    @Test("An upload is done when its object has its bytes and attributes, also when the storage added a type")
    func defaultType() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 100)
            let place = TransferFixture.location
            let upload = try await fixture.app.transfers.upload(
                file, to: place, options: .init(attributes: .init(metadata: ["a": "b"])))
            let background = ScriptedBackground(fixture.storage)
            try await handOver(upload, to: background, fixture, times: 1)
            background.forget(upload.id.uuid)
            fixture.storage.keep(bytes, at: place)
            fixture.storage.state.withLock {
                $0.objects[place]?.attributes = .init(contentType: "binary/octet-stream", metadata: ["a": "b"])
            }
            try await handOver(upload, to: background, fixture, times: 2)
            #expect(try upload.status().state == .done)
            #expect(background.handedOver.count == 1)
        }
    }

    @Test("An upload is handed over again when its user may send objects but not inspect them")
    func mayNotLook() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .head = call { throw ObjectError(.accessDenied, "not you", status: 403) }
            }
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let background = ScriptedBackground(fixture.storage)
            try await handOver(upload, to: background, fixture, times: 1)
            background.forget(upload.id.uuid)
            try await handOver(upload, to: background, fixture, times: 2)
            #expect(background.handedOver.count == 2)
        }
    }

    @Test("An executor gets the attributes of an upload, and the checksum of its file")
    func given() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 100)
            let attributes = ObjectAttributes(contentType: "video/quicktime", metadata: ["note": "a"])
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: .init(attributes: attributes))
            let background = ScriptedBackground(fixture.storage)
            try await fixture.runner { $0.background = background }.whileRunning {
                try await eventually { !background.handedOver.isEmpty }
                let given = try #require(background.given(upload.id.uuid))
                #expect(given.attributes == attributes && given.crc32c == CRC32C(of: bytes).value)
            }
        }
    }

    @Test("An executor gets a file whole that the process would send in parts")
    func whole() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let background = ScriptedBackground(fixture.storage)
            try await handOver(upload, to: background, fixture, times: 1)
            #expect(background.handedOver == [upload.id.uuid])
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("The runner of another partition leaves with the executor what was handed over in one that was left")
    func otherPartition() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let background = ScriptedBackground(fixture.storage)
            try await handOver(upload, to: background, fixture, times: 1)
            let other = try await fixture.store.switch(to: backend("b")).partition
            var options = TransferRunner.Options()
            options.background = background
            try await TransferRunner(other, storage: fixture.storage, options: options).drain()
            #expect(background.ended.isEmpty && background.uploads == [upload.id.uuid])
        }
    }

    @Test("An executor forgets an upload that it has sent only once the end is on disk")
    func forgottenLast() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let background = ScriptedBackground(fixture.storage)
            try await handOver(upload, to: background, fixture, times: 1)
            try background.send(upload.id.uuid)
            let isKnown = Mutex<Bool?>(nil)
            let runner = fixture.runner {
                $0.background = background
                $0.reached = { step in
                    guard step == .finished else { return }
                    isKnown.withLock { $0 = background.uploads.contains(upload.id.uuid) }
                }
            }
            try await runner.drain()
            #expect(isKnown.withLock { $0 } == true)
            #expect(try upload.status().state == .done)
            #expect(background.uploads.isEmpty)
        }
    }

    @Test("A storage that asks for patience is left alone also where an executor has got that answer")
    func patience() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let transfers = fixture.app.transfers
            let first = try await transfers.upload(file, to: TransferFixture.location)
            let background = ScriptedBackground(fixture.storage)
            let runner = fixture.runner {
                $0.background = background
                $0.pauseForAnHour()
            }
            try await runner.whileRunning {
                try await eventually { background.handedOver.count == 1 }
                background.fail(first.id.uuid, .throttled)
                try await eventually { try first.status().failure != nil }
                let next = try await transfers.upload(file, to: .init(bucket: "media", key: "next"))
                let other = try await transfers.upload(file, to: .init(bucket: "other", key: "next"))
                try await eventually { background.handedOver.contains(other.id.uuid) }
                #expect(try next.status().attempts == 0)
            }
        }
    }
}
