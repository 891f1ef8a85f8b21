import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

private func mode(of file: URL) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
}

@Suite("Whose the files of downloads are", .timeLimit(.minutes(10)))
struct PrivateDownloadTests {
    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

    /// Carries a download out, to a folder on a volume, and looks at its partial file while bytes arrive.
    private func download(into folder: URL, _ fixture: TransferFixture) async throws {
        fixture.storage.keep(Self.bytes, at: TransferFixture.location)
        let (file, other) = (folder.appending(path: "copy"), folder.appending(path: "other"))
        let seen = Flag()
        fixture.storage.onCall { call in
            guard case .get = call, let name = fixture.partials.first else { return }
            let partial = fixture.folder.appending(path: "store/transfers/\(name)")
            if (try? mode(of: partial)) == 0o600 { seen.set() }
        }
        _ = try await fixture.app.transfers.download(TransferFixture.location, to: file)
        try await fixture.drain()
        #expect(seen.isSet)
        #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        // What any file has that this program makes there.
        try Data().write(to: other)
        #expect(try mode(of: file) == mode(of: other))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == ["copy", "other"])
    }

    @Test("A download is its user's alone until it is whole, and then has the mode of the program's own files")
    func ordinary() async throws {
        try await withTransferFixture { fixture in
            let folder = fixture.folder.appending(path: "there")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            try await download(into: folder, fixture)
        }
    }

    @Test("So has one that goes to another volume", .enabled(if: canMount, "mounts a volume, as root alone may"))
    func otherVolume() async throws {
        try await withTransferFixture { fixture in
            try await withSmallVolume(1 << 20) { volume in try await download(into: volume, fixture) }
        }
    }

    @Test("A link where a partial file would be made is not followed: what it leads to stays as it is")
    func link() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            let victim = fixture.folder.appending(path: "victim")
            try Data("mine".utf8).write(to: victim)
            let download = try await fixture.download()
            let partial = URL(
                filePath: PartialFile.path(of: download.id.uuid, in: fixture.folder.appending(path: "store")))
            try FileManager.default.createDirectory(
                at: partial.deletingLastPathComponent(), withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(at: partial, withDestinationURL: victim)
            try await fixture.drain()
            await expectCode(.destinationUnusable) { try await download.finished() }
            #expect(try Data(contentsOf: victim) == Data("mine".utf8))
            #expect(!FileManager.default.fileExists(atPath: fixture.copy.path))
        }
    }

    @Test("A file that appeared at the destination after the look at it is not replaced")
    func appeared() async throws {
        try await withTemporaryFolder { folder in
            let (file, partial) = (folder.appending(path: "copy"), folder.appending(path: "partial"))
            let destination = DestinationFile(file: file, replaces: false, FileSystem())
            try destination.check()
            try Data("new".utf8).write(to: partial)
            try Data("mine".utf8).write(to: file)
            await expectCode(.destinationExists) { _ = try destination.move(partial.path) }
            #expect(try Data(contentsOf: file) == Data("mine".utf8))
            #expect(try Data(contentsOf: partial) == Data("new".utf8))
        }
    }

    @Test("A download takes its place by another name also on a volume that has no links", arguments: [EPERM, ENOTSUP])
    func withoutLinks(status: Int32) async throws {
        try await withTemporaryFolder { folder in
            let (file, partial) = (folder.appending(path: "copy"), folder.appending(path: "partial"))
            let files = FileSystem(injecting: { $0.kind == .link ? .failure(status) : nil })
            try Data("new".utf8).write(to: partial)
            #expect(try DestinationFile(file: file, replaces: false, files).move(partial.path))
            #expect(try Data(contentsOf: file) == Data("new".utf8))
            #expect(!FileManager.default.fileExists(atPath: partial.path))
        }
    }

    @Test("Nothing is done to a transfer by a handle of a parked partition")
    func parked() async throws {
        try await withTransferFixture { fixture in
            let file = fixture.folder.appending(path: "source")
            try Data(Self.bytes).write(to: file)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            _ = try await fixture.store.switch(to: backend("b"))
            await expectCode(.parked) { try await upload.cancel() }
            await expectCode(.parked) { try await upload.pause() }
            await expectCode(.parked) { try await upload.resume() }
            await expectCode(.parked) { try await upload.retry() }
            #expect(try upload.status().state == .pending)
        }
    }
}
