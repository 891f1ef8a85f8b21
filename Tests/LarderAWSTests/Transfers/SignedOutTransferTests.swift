import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite("Transfers of a user who is signed out", .timeLimit(.minutes(10)))
struct SignedOutTransferTests {
    @Test("A transfer waits for a sign-in, says so, and goes on at once when a user signs in")
    func waits() async throws {
        let provider = InMemoryIdentityProvider()
        try await withNewStore(of: provider) { store, folder in
            let app = try store.partition()
            let file = folder.appending(path: "file")
            try Data("soup".utf8).write(to: file)
            let upload = try await app.transfers.upload(file, to: ObjectLocation(bucket: "media", key: "k"))
            try await ScriptedStorage.run { _ in
                Reply(headers: ["ETag": "\"opaque\""])
            } credentials: { time in
                try await app.session.cloudCredentials(within: time)
            } _: { storage, transport in
                var options = TransferRunner.Options()
                options.backoff = Backoff(first: .seconds(3_600), cap: .seconds(3_600))
                let runner = TransferRunner(app, storage: transport, options: options)
                let running = Task { try await runner.run() }
                for await progress in upload.progress where progress.waiting == .notSignedIn { break }
                // The runner says so after it has noted why.
                try await eventually { runner.state == .waitingForSignIn }
                #expect(storage.requests.isEmpty)
                try await app.session.signIn(provider.signIn("ada"), within: ample)
                #expect(try await upload.finished(within: ample).state == .done)
                running.cancel()
                try await running.value
            }
        }
    }
}
