import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Transfers that lack what others let go of", .timeLimit(.minutes(10)))
struct ShortageTests {
    @Test(
        "An upload and a download for which there was no descriptor, or no memory, are tried again",
        arguments: [EMFILE, ENFILE, ENOMEM])
    func shortage(status: Int32) async throws {
        try await withTransferFixture { fixture in
            let (source, bytes) = try fixture.file(bytes: 2000)
            let kept = ObjectLocation(bucket: "media", key: "kept")
            fixture.storage.keep(bytes, at: kept)
            let failures = Mutex(0)
            let isShort = Flag()
            var options = Store.Options()
            options.silence()
            options.files = FileSystem(injecting: { call in
                let isFile = call.path == source.path || call.path.hasSuffix(".part")
                guard isShort.isSet, call.kind == .open, isFile else { return nil }
                // Each of the two files lacks it twice.
                return failures.withLock { count in
                    count += 1
                    return count <= 4 ? .failure(status) : nil
                }
            })
            try fixture.store.close()
            let (store, app) = try TransferFixture.open(fixture.folder, options)
            let upload = try await app.transfers.upload(source, to: TransferFixture.location)
            let copy = fixture.folder.appending(path: "copy")
            let download = try await app.transfers.download(kept, to: copy)
            isShort.set()
            var runnerOptions = TransferRunner.Options()
            runnerOptions.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
            try await TransferRunner(app, storage: fixture.storage, options: runnerOptions).drain()
            #expect(try await upload.finished().state == .done)
            #expect(try await download.finished().state == .done)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(try Data(contentsOf: copy) == Data(bytes))
            #expect(failures.withLock { $0 } > 4)
            try store.close()
        }
    }
}
