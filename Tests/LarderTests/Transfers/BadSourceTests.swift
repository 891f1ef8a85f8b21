import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@Suite("Sources of uploads that are not what they were", .timeLimit(.minutes(10)))
struct BadSourceTests {
    enum Damage: String, Sendable, CaseIterable {
        case removed, replaced, written, truncated, unreadable, folder

        var code: LarderError.Code {
            switch self {
            case .removed: .sourceMissing
            case .replaced, .written, .truncated: .sourceChanged
            case .unreadable: .sourceUnreadable
            case .folder: .sourceNotFile
            }
        }

        func happen(to file: URL) throws {
            switch self {
            case .removed: try FileManager.default.removeItem(at: file)
            case .replaced: try Data(repeating: 1, count: 10_000).write(to: file, options: .atomic)
            case .written:
                let handle = try FileHandle(forUpdating: file)
                try handle.write(contentsOf: Data("other".utf8))
                try handle.close()
            case .truncated:
                let handle = try FileHandle(forUpdating: file)
                try handle.truncate(atOffset: 100)
                try handle.close()
            case .unreadable:
                // A link to itself can be opened by nobody, root included.
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createSymbolicLink(at: file, withDestinationURL: file)
            case .folder:
                try FileManager.default.removeItem(at: file)
                try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            }
        }
    }

    /// Puts a file where one was harmed, and expects that the upload sends that when it is tried again.
    private func expectRetried(_ upload: Transfer, _ file: URL, _ fixture: TransferFixture) async throws {
        try? FileManager.default.removeItem(at: file)
        let (_, bytes) = try fixture.file(bytes: 9000, seed: 12)
        try await upload.retry()
        try await fixture.drain()
        try await upload.finished()
        #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
    }

    @Test(
        "An upload says what its file became while it waited, sends nothing, and can be tried again",
        arguments: Damage.allCases)
    func waiting(harm: Damage) async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10_000)
            try harm.happen(to: file)
            try await fixture.drain()
            await expectCode(harm.code) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
            try await expectRetried(upload, file, fixture)
        }
    }

    @Test(
        "An upload says what its file became between two attempts, removes what was sent, and can be tried again",
        arguments: Damage.allCases)
    func between(harm: Damage) async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10_000)
            let failures = Countdown(1)
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(5) = call, failures.take() else { return }
                try? harm.happen(to: file)
                throw ObjectError(.interrupted, "for a test")
            }
            try await fixture.drain()
            await expectCode(harm.code) { try await upload.finished() }
            #expect(fixture.storage.object(TransferFixture.location) == nil)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            try await expectRetried(upload, file, fixture)
        }
    }

    @Test(
        "A part during which the file changed is not taken for one of the file's that was queued, however it was read",
        arguments: [Damage.written, .truncated])
    func afterPart(harm: Damage) async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10_000)
            // As where the system sends the file by itself: all bytes have been given when the file becomes another.
            fixture.storage.onAnswer { call in
                if case .putPart(2) = call { try? harm.happen(to: file) }
            }
            let sent = Mutex(0)
            try await fixture.drain { options in
                options.connectionsPerHost = 1
                options.reached = { step in if step == .partSent { sent.withLock { $0 += 1 } } }
            }
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(sent.withLock { $0 } == 1)
        }
    }

    @Test("An upload notices that its file changed between two parts before it sends the next part")
    func beforePart() async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10_000)
            let noted = Mutex(0)
            try await fixture.drain { options in
                options.connectionsPerHost = 1
                options.reached = { step in
                    guard step == .partNoted else { return }
                    let count = noted.withLock { noted in
                        noted += 1
                        return noted
                    }
                    if count == 2 { try? Damage.truncated.happen(to: file) }
                }
            }
            await expectCode(.sourceChanged) { try await upload.finished() }
            let asked = fixture.storage.calls.compactMap { if case .putPart(let number) = $0 { number } else { nil } }
            #expect(asked == [1, 2])
        }
    }

    @Test(
        "Bytes that change while they are sent in one piece do not take the place of what is there",
        arguments: [
            Damage.written, .truncated,
        ])
    func whole(harm: Damage) async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep([1, 2, 3], at: TransferFixture.location)
            let (upload, file, _) = try await fixture.upload(bytes: 3000)
            fixture.storage.onCall { call in
                if case .put = call { try? harm.happen(to: file) }
            }
            try await fixture.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == [1, 2, 3])
        }
    }

    @Test(
        "An upload does not send another file, or a longer one, that has the queued file's time of modification",
        arguments: [true, false])
    func sameTime(isReplaced: Bool) async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 10_000)
            let attributes = [FileAttributeKey.modificationDate: Date(timeIntervalSince1970: 1_700_000_000)]
            try FileManager.default.setAttributes(attributes, ofItemAtPath: file.path)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            if isReplaced {
                try Data(bytes.reversed()).write(to: file, options: .atomic)
            } else {
                let handle = try FileHandle(forUpdating: file)
                try handle.truncate(atOffset: 10_001)
                try handle.close()
            }
            try FileManager.default.setAttributes(attributes, ofItemAtPath: file.path)
            try await fixture.drain()
            await expectCode(.sourceChanged) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("An upload of a device file without an end is refused")
    func endless() async throws {
        try await withTransferFixture { fixture in
            await expectCode(.sourceNotFile) {
                _ = try await fixture.app.transfers.upload(URL(filePath: "/dev/zero"), to: TransferFixture.location)
            }
        }
    }

    @Test(
        "A file that says it has 0 bytes, and has some, is not sent as nothing",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/version"), "only some systems have such files"))
    func sizeless() async throws {
        try await withTransferFixture { fixture in
            await expectCode(.sourceUnreadable) {
                _ = try await fixture.app.transfers.upload(URL(filePath: "/proc/version"), to: TransferFixture.location)
            }
            let upload = try await fixture.upload(bytes: 0).upload
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == [])
        }
    }

    @Test(
        "The error of an upload whose file may not be opened, or cannot be read, has the file error as its cause",
        arguments: [(FileCall.Kind.open, EACCES), (.status, EIO)])
    func cause(kind: FileCall.Kind, status: Int32) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            try fixture.store.close()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                call.kind == kind && call.path == file.path ? .failure(status) : nil
            })
            let (store, app) = try TransferFixture.open(fixture.folder, options)
            let error = await larderError { try await app.transfers.upload(file, to: TransferFixture.location) }
            #expect(error?.code == .sourceUnreadable && error?.cause is FileError, "\(error as Any)")
            try store.close()
        }
    }

    @Test(
        "An upload whose file the disk cannot read fails when it is queued, or when it is sent",
        arguments: [FileCall.Kind.status, .read])
    func failingDisk(kind: FileCall.Kind) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            try fixture.store.close()
            let isFailing = Flag()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                isFailing.isSet && call.kind == kind && call.path == file.path ? .failure(EIO) : nil
            })
            let (store, app) = try TransferFixture.open(fixture.folder, options)
            // The file is looked at when it is queued, and read when it is sent.
            var queued: Transfer?
            if kind == .read { queued = try await app.transfers.upload(file, to: TransferFixture.location) }
            isFailing.set()
            if let queued {
                try await TransferRunner(app, storage: fixture.storage).drain()
                await expectCode(.sourceUnreadable) { try await queued.finished() }
            } else {
                await expectCode(.sourceUnreadable) {
                    _ = try await app.transfers.upload(file, to: TransferFixture.location)
                }
            }
            #expect(fixture.storage.object(TransferFixture.location) == nil)
            try store.close()
        }
    }

    @Test("An upload whose source is gone is done where the storage has all of it")
    func arrivedBefore() async throws {
        try await withTransferFixture { fixture in
            let (upload, file, bytes) = try await fixture.upload(bytes: 5_000)
            fixture.storage.onAnswer { call throws(ObjectError) in
                guard case .complete = call, FileManager.default.fileExists(atPath: file.path) else { return }
                try? FileManager.default.removeItem(at: file)
                throw ObjectError(.interrupted, "the answer was lost")
            }
            try await fixture.drain()
            #expect(try upload.status().state == .done)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("A file that would take 10,001 parts goes in larger ones")
    func manyParts() async throws {
        try await withTransferFixture(MemoryStorage(partSize: 1, maximumParts: 10_000)) { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_001)
            try await fixture.drain { $0.partSize = 1 }
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.contains(.complete))
            #expect(fixture.storage.calls.count { if case .putPart = $0 { true } else { false } } <= 10_000)
        }
    }

    @Test("A file that no number of parts is enough for is refused, and the storage is asked for nothing")
    func tooLarge() async throws {
        try await withTransferFixture(MemoryStorage(maximumParts: 9, largestPart: 1024)) { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.tooLarge")) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test(
        "An upload whose file cannot be read is not tried again before it can",
        arguments: [Damage.removed, .unreadable, .folder])
    func retried(harm: Damage) async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10_000)
            try harm.happen(to: file)
            try await fixture.drain()
            await expectCode(harm.code) { try await upload.retry() }
            #expect(try upload.status().state == .failed)
            try await expectRetried(upload, file, fixture)
        }
    }

    @Test("An upload of a key that is only written alike is another's, and stays")
    func alikeKeys() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 10_000)
            let mine = ObjectLocation(bucket: "media", key: "caf\u{E9}")
            let others = MultipartUpload(location: .init(bucket: "media", key: "cafe\u{301}"), id: "others")
            let upload = try await fixture.app.transfers.upload(file, to: mine)
            let failures = Countdown(1)
            fixture.storage.onAnswer { [storage = fixture.storage] call throws(ObjectError) in
                guard case .beginUpload = call, failures.take() else { return }
                storage.state.withLock { $0.uploads["others"] = .init(location: others.location, attributes: .init()) }
                throw ObjectError(.interrupted, "for a test")
            }
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(mine)?.bytes == bytes)
            #expect(fixture.storage.state.withLock { Array($0.uploads.keys) } == ["others"])
        }
    }
}
