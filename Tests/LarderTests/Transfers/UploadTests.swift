import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Uploads", .timeLimit(.minutes(10)))
struct UploadTests {
    @Test("A file arrives byte for byte, in one piece or in parts", arguments: [0, 1, 3999, 4000, 4001, 4096, 50_000])
    func arrives(count: Int) async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: count)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location,
                options: .init(attributes: .init(contentType: "video/quicktime", metadata: ["note": "a"])))
            #expect(try upload.status().state == .pending)
            try await fixture.drain()
            let status = try await upload.finished()
            let object = try #require(fixture.storage.object(TransferFixture.location))
            #expect(object.bytes == bytes)
            #expect(object.attributes == .init(contentType: "video/quicktime", metadata: ["note": "a"]))
            #expect(status.etag == object.etag && status.size == Int64(count) && status.arrived == Int64(count))
            #expect(fixture.storage.calls.contains(.complete) == (count > 4000))
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A transfer that cannot be started says so at once, and nothing is queued")
    func refused() async throws {
        try await withTransferFixture { fixture in
            let transfers = fixture.app.transfers
            let missing = fixture.folder.appending(path: "none")
            await expectCode(.sourceMissing) { _ = try await transfers.upload(missing, to: TransferFixture.location) }
            await expectCode(.sourceNotFile) {
                _ = try await transfers.upload(fixture.folder, to: TransferFixture.location)
            }
            let (file, _) = try fixture.file(bytes: 10)
            for key in ["", String(repeating: "k", count: 1025)] {
                await expectCode(.invalidTransfer) {
                    _ = try await transfers.upload(file, to: .init(bucket: "media", key: key))
                }
            }
            await expectCode(.invalidTransfer) { _ = try await transfers.upload(file, to: .init(bucket: "", key: "k")) }
            let half = String(repeating: "1", count: 1023)
            for attributes in [
                ObjectAttributes(metadata: ["a": half, "b": half + "2"]),
                ObjectAttributes(contentType: String(repeating: "t", count: 2049)),
            ] {
                await expectCode(.invalidTransfer) {
                    _ = try await transfers.upload(
                        file, to: TransferFixture.location, options: .init(attributes: attributes))
                }
            }
            let most = ObjectAttributes(metadata: ["a": String(repeating: "1", count: 2047)])
            try await transfers.upload(file, to: TransferFixture.location, options: .init(attributes: most)).cancel()
            try await fixture.app.transfers.core.operationsStore.database().transfers.prune(
                keeping: 0, in: fixture.app.core.name)
            await expectCode(.destinationExists) {
                _ = try await transfers.download(TransferFixture.location, to: file)
            }
            await expectCode(.destinationUnusable) {
                _ = try await transfers.download(TransferFixture.location, to: missing.appending(path: "x"))
            }
            await expectCode(.destinationUnusable) {
                _ = try await transfers.download(
                    TransferFixture.location, to: fixture.folder, options: .init(replacesFile: true))
            }
            #expect(try transfers.all().isEmpty)
        }
    }

    @Test("A download of an object that cannot be is refused as an upload of it is, and is not queued")
    func refusedDownload() async throws {
        try await withTransferFixture { (fixture) async throws in
            let copy = fixture.folder.appending(path: "copy")
            for (bucket, key) in [("media", ""), ("media", String(repeating: "k", count: 1025)), ("", "k")] {
                await expectCode(.invalidTransfer) {
                    _ = try await fixture.app.transfers.download(.init(bucket: bucket, key: key), to: copy)
                }
            }
            #expect(try fixture.app.transfers.all().isEmpty)
        }
    }

    @Test("Of many uploads at once none is queued where one of them cannot be")
    func noneOfMany() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let missing = fixture.folder.appending(path: "none")
            await expectCode(.sourceMissing) {
                _ = try await fixture.app.transfers.upload(
                    [file, missing].map { ($0, TransferFixture.location, UploadOptions()) })
            }
            #expect(try fixture.app.transfers.all().isEmpty)
        }
    }

    @Test("Exchanges that carry bytes end by the runner's `idle`, completions by their own time, others by `timeout`")
    func ownTimes() async throws {
        try await withTransferFixture { fixture in
            for (name, count) in [("small", 100), ("large", 10_000)] {
                let (file, _) = try fixture.file(name, bytes: count)
                _ = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: name))
            }
            fixture.storage.keep([UInt8](repeating: 7, count: 100), at: TransferFixture.location)
            _ = try await fixture.app.transfers.download(
                TransferFixture.location, to: fixture.folder.appending(path: "copy"))
            try await fixture.drain {
                ($0.idle, $0.timeout, $0.completionTimeout) = (.seconds(1_000), .seconds(2_000), .seconds(3_000))
            }
            let times = fixture.storage.state.withLock { $0.times }
            #expect(times[.put("small")] == .seconds(1_000) && times[.putPart(1)] == .seconds(1_000))
            #expect(times[.get(0..<100)] == .seconds(1_000) && times[.complete] == .seconds(3_000))
            for call in [MemoryStorage.Call.uploads, .beginUpload("large"), .head(TransferFixture.location.key)] {
                let time = try #require(times[call], "\(call)")
                #expect(time > .seconds(1_000) && time <= .seconds(2_000), "\(call)")
            }
        }
    }

    @Test("A transfer that cannot be stored on disk is refused, and is not listed")
    func notOnDisk() async throws {
        try await withTransferFixture { fixture in
            let transfers = fixture.app.transfers
            let (file, _) = try fixture.file(bytes: 10)
            let first = try await transfers.upload(file, to: TransferFixture.location)
            let program = try OtherProgram(fixture.folder.appending(path: "store"))
            try program.run(
                "CREATE TRIGGER refused BEFORE INSERT ON transfer BEGIN SELECT RAISE(ABORT, 'no room'); END")
            await expectCode(.operationsStorage) {
                _ = try await transfers.upload(file, to: TransferFixture.location)
            }
            await expectCode(.operationsStorage) {
                let place = fixture.folder.appending(path: "down")
                _ = try await transfers.download(TransferFixture.location, to: place)
            }
            try program.run("DROP TRIGGER refused")
            #expect(try transfers.all().map(\.id) == [first.id])
        }
    }

    @Test("A key has at most 1,024 bytes, however many letters they are", arguments: [(512, true), (513, false)])
    func keyBytes(letters: Int, isTaken: Bool) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            // Each is of two bytes.
            let location = ObjectLocation(bucket: "media", key: String(repeating: "\u{E9}", count: letters))
            if isTaken {
                let upload = try await fixture.app.transfers.upload(file, to: location)
                #expect(try upload.status().location == location)
            } else {
                await expectCode(.invalidTransfer) { _ = try await fixture.app.transfers.upload(file, to: location) }
            }
        }
    }

    @Test("A content type of 2 KiB is taken")
    func longestContentType() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let attributes = ObjectAttributes(contentType: String(repeating: "t", count: 2048))
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: .init(attributes: attributes))
            #expect(try upload.status().state == .pending)
        }
    }

    @Test("Metadata has at most 2 KiB, however many letters that is", arguments: [("ab", true), ("abc", false)])
    func metadataBytes(name: String, isTaken: Bool) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            // 2,046 bytes, and the name's.
            let attributes = ObjectAttributes(metadata: [name: String(repeating: "\u{E9}", count: 1023)])
            let options = UploadOptions(attributes: attributes)
            if isTaken {
                let upload = try await fixture.app.transfers.upload(
                    file, to: TransferFixture.location, options: options)
                #expect(try upload.status().state == .pending)
            } else {
                await expectCode(.invalidTransfer) {
                    _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location, options: options)
                }
            }
        }
    }

    @Test("A file that is written to after it was queued is not sent, and the reason is told")
    func changed() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let (_, bytes) = try fixture.file(bytes: 9000, seed: 8)
            try await fixture.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(fixture.storage.object(TransferFixture.location) == nil)
            try await upload.retry()
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("A file that changes while it is sent leaves nothing at the storage")
    func changedMeanwhile() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onCall { [fixture] call in
                if case .putPart(5) = call { _ = try? fixture.file(bytes: 10_000, seed: 9) }
            }
            try await fixture.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(fixture.storage.object(TransferFixture.location) == nil)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test(
        "A failure that may pass is tried again, and no part is sent again that the storage has",
        arguments: [
            ObjectError.Code.interrupted, .timedOut, .serverFault, .throttled, .checksum, .unreachable,
            .expiredCredentials,
        ])
    func passing(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let failures = Countdown(3)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .putPart(let number) = call, number % 3 == 0, failures.take() {
                    throw ObjectError(code, "for a test")
                }
            }
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            let sent = fixture.storage.calls.compactMap { if case .putPart(let number) = $0 { number } else { nil } }
            #expect(sent.sorted() == Array(1...10))
            #expect(try upload.status().attempts > 1)
        }
    }

    @Test(
        "A transfer that no repetition helps fails with its reason, and leaves nothing",
        arguments: [
            ObjectError.Code.accessDenied, .noSuchBucket, .rejected, .wrongRegion,
        ])
    func final(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onCall { call throws(ObjectError) in
                if case .putPart(7) = call { throw ObjectError(code, "for a test") }
            }
            try await fixture.drain()
            await expectCode(.init(rawValue: code.rawValue)) { try await upload.finished() }
            #expect(try upload.status().arrived == 0)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A server that always fails is given up after so many failures in a row")
    func givenUp() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.serverFault, "for a test") }
            try await fixture.drain { $0.maximumFaults = 4 }
            await expectCode(.init(rawValue: "object.serverFault")) { try await upload.finished() }
            #expect(try upload.status().attempts == 4)
        }
    }

    @Test(
        "An upload fails after too many timeouts, broken connections or wrong checksums in a row",
        arguments: [ObjectError.Code.timedOut, .interrupted, .checksum])
    func givenUpToo(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(code, "for a test") }
            let runner = fixture.runner { $0.maximumFaults = 4 }
            try await runner.run(until: { try upload.status().isEnded || upload.status().attempts > 4 })
            let status = try upload.status()
            #expect(status.state == .failed && status.attempts == 4)
        }
    }

    @Test("A lost answer to the last step is no second upload: the object tells that it is there")
    func lostCompletion() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let failures = Countdown(1)
            fixture.storage.onAnswer { call throws(ObjectError) in
                if call == .complete, failures.take() { throw ObjectError(.interrupted, "for a test") }
            }
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { $0 == .complete } == 1)
            #expect(fixture.storage.calls.count { if case .putPart = $0 { true } else { false } } == 10)
        }
    }

    @Test("Parts whose answers were lost are found at the storage and not sent again", arguments: [false, true])
    func lostParts(tellsChecksums: Bool) async throws {
        try await withTransferFixture(tellsChecksums: tellsChecksums) { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let failures = Countdown(1)
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .putPart(4) = call, failures.take() { throw ObjectError(.interrupted, "for a test") }
            }
            try await fixture.drain { $0.connectionsPerHost = 1 }
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { $0 == .putPart(4) } == 1)
        }
    }

    @Test("An upload that goes on has come as far as the parts that the storage has, noted or not")
    func progressOfLostPart() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let (failures, isSent, mayGoOn) = (Countdown(1), Flag(), Flag())
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .putPart(10) = call, failures.take() { throw ObjectError(.interrupted, "for a test") }
            }
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .complete = call else { return }
                isSent.set()
                await mayGoOn.wait()
            }
            try await fixture.expectProgress(of: upload, 10_000, once: isSent, thenSetting: mayGoOn) {
                $0.connectionsPerHost = 1
            }
        }
    }

    @Test("A part that the storage lists with another ETag than was noted is not the noted one, and is sent again")
    func otherPart() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            changeThirdPart(at: fixture.storage)
            try await fixture.drain { $0.connectionsPerHost = 1 }
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { $0 == .putPart(3) } == 2)
            #expect(fixture.storage.calls.count { $0 == .complete } == 1)
        }
    }

    /// Has a storage lose the connection at the sixth part, once, and other bytes be there as the third.
    ///
    /// - Parameter checksum: What it says of those.
    private func changeThirdPart(at storage: MemoryStorage, saying checksum: UInt32? = nil) {
        let failures = Countdown(1)
        storage.onCall { call throws(ObjectError) in
            guard case .putPart(6) = call, failures.take() else { return }
            if let checksum { storage.saidChecksums.withLock { $0[3] = checksum } }
            storage.state.withLock { state in
                for id in state.uploads.keys { state.uploads[id]?.parts[3] = [UInt8](repeating: 1, count: 1024) }
            }
            throw ObjectError(.interrupted, "for a test")
        }
    }

    @Test("A part that the storage lists with the file's checksum and the ETag of other bytes is sent again")
    func repeatedChecksum() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let checksum = CRC32C(of: Array(bytes[2048..<3072])).value
            changeThirdPart(at: fixture.storage, saying: checksum)
            try await fixture.drain { $0.connectionsPerHost = 1 }
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { $0 == .putPart(3) } == 2)
        }
    }

    @Test(
        "A storage that does not list uploads takes one in parts",
        arguments: [
            ObjectError(.rejected, "NotImplemented", status: 501),
            ObjectError(.rejected, "InvalidRequest", status: 400),
            ObjectError(.notFound, "no", status: 404), ObjectError(.accessDenied, "no", status: 403),
        ])
    func unlisted(error: ObjectError) async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            fixture.storage.onCall { call throws(ObjectError) in
                if call == .uploads { throw error }
            }
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("An upload that another client has aborted begins anew")
    func aborted() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let failures = Countdown(1)
            fixture.storage.onCall { [storage = fixture.storage] call in
                if case .putPart(6) = call, failures.take() { storage.state.withLock { $0.uploads = [:] } }
            }
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("No more connections than may be, and transfers of the highest priority first")
    func bounds() async throws {
        try await withTransferFixture { fixture in
            for (name, priority) in [("low", 0), ("high", 5), ("middle", 1)] {
                let (file, _) = try fixture.file(name, bytes: 100)
                _ = try await fixture.app.transfers.upload(
                    file, to: .init(bucket: "media", key: name), options: .init(priority: priority))
            }
            try await fixture.drain { $0.maximumTransfers = 1 }
            #expect(fixture.storage.calls == [.put("high"), .put("middle"), .put("low")])
            let (file, _) = try fixture.file("large", bytes: 50_000)
            _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            try await fixture.drain { $0.connectionsPerHost = 3 }
            #expect(fixture.storage.state.withLock { $0.mostBusy } <= 3)
        }
    }

    @Test("As many exchanges are under way side by side as there may be connections, of all transfers together")
    func connections() async throws {
        try await withTransferFixture { fixture in
            let (small, _) = try fixture.file("small", bytes: 100)
            let (large, _) = try fixture.file("large", bytes: 20_000)
            for number in 0..<6 {
                let location = ObjectLocation(bucket: "media", key: "\(number)")
                _ = try await fixture.app.transfers.upload(number.isMultiple(of: 2) ? small : large, to: location)
            }
            fixture.storage.onCall { call throws(ObjectError) in
                do { try await Task.sleep(for: .milliseconds(5)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            try await fixture.drain { $0.connectionsPerHost = 2 }
            #expect(fixture.storage.state.withLock { $0.objects.count } == 6)
            #expect(fixture.storage.state.withLock { $0.mostBusy } == 2)
        }
    }
}
