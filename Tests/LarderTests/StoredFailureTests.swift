import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

@Suite("What is stored of a failure", .timeLimit(.minutes(10)))
struct StoredFailureTests {
    /// As a library below the transport throws one.
    private struct ForeignError: Error, CustomStringConvertible {
        let description = "connectTimeout(NIOCore.TimeAmount(nanoseconds: 1))"
    }

    @Test("A mutation's is Larder's code and sentence, without the texts of libraries below")
    func mutation() async throws {
        let server = ScriptedServer { _ in
            throw TransportError(.unreachable, "No connection could be made", cause: ForeignError())
        }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            let service = Task { try await quickRunner(app).run() }
            // That of the first attempt: a later one may be broken off when the runner is.
            var failure = try receipt.status()?.failure
            while failure == nil {
                try await Task.sleep(for: .milliseconds(2))
                failure = try receipt.status()?.failure
            }
            service.cancel()
            _ = try? await service.value
            #expect(failure?.code == .transportUnreachable && failure?.message == "No connection could be made")
        }
    }

    @Test("So is a transfer's, with the names by which the storage's owners find the request")
    func transfer() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            fixture.storage.onCall { _ throws(ObjectError) in
                throw ObjectError(
                    .accessDenied, "These keys may not do this", serverCode: "AccessDenied", requestID: "R7",
                    cause: ForeignError())
            }
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            try await fixture.drain()
            let failure = try upload.status().failure
            #expect(failure?.code == .objectAccessDenied)
            #expect(failure?.message == "These keys may not do this [AccessDenied, request R7]")
            let outcome = try await upload.outcome(within: .zero)
            let error = try #require(outcome.failure)
            #expect(error.code == .objectAccessDenied && error.message == failure?.message && error.cause == nil)
            fixture.storage.onCall { _ in }
        }
    }

    @Test("A storage's error is described by its message, its code, the server's names for it and its cause")
    func described() {
        let cause = ForeignError()
        let error = ObjectError(
            .accessDenied, "These keys may not do this", serverCode: "AccessDenied", requestID: "R7", cause: cause)
        let names = "[object.accessDenied, AccessDenied, request R7]"
        #expect("\(error)" == "These keys may not do this \(names): \(cause)")
    }

    @Test("A text that counts says one thing as one, and other numbers as several")
    func counts() {
        #expect([0, 1, 2].map { $0.counted("mutation") } == ["0 mutations", "1 mutation", "2 mutations"])
        #expect([1, 2].map { $0.counted("entry", "entries") } == ["1 entry", "2 entries"])
    }
}
