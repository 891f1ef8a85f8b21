import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

/// A provider that records what is stored when it is first told of a sign-out.
private final class Witness: IdentityProvider {
    let seen = Mutex<CredentialSnapshot?>(nil)
    private let database: OperationsDatabase

    init(_ database: OperationsDatabase) { self.database = database }

    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        throw IdentityError(.unreachable, "away")
    }

    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {
        let snapshot = try? database.credentials.snapshot(of: "main")
        seen.withLock { $0 = $0 ?? snapshot }
    }
}

@Suite("Signing out", .timeLimit(.minutes(5)))
struct SignOutTests {
    @Test("Signing out deletes the stored credentials before it tells the server")
    func goneFirst() async throws {
        try await withSessions { bench in
            let witness = Witness(bench.database)
            let session = bench.session(by: witness)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            let left = try await session.signOut(within: soon)
            #expect(left.isServerTold == true)
            let seen = try #require(witness.seen.withLock { $0 })
            #expect(seen.credentials.isEmpty && seen.session?.state == "signedOut")
        }
    }

    @Test("Signing out counts what its own partition has not sent, and nothing of another")
    func countsOwn() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            try await bench.makePartitions("other")
            for partition in ["main", "other", "other"] {
                try await bench.enqueueMutation(in: partition)
                let upload = TransferDraft(
                    partition: partition, kind: .upload, bucket: "media", key: "a", path: "/a",
                    created: bench.clock.now)
                try await bench.database.transfers.enqueue([upload])
            }
            let left = try await session.signOut(within: soon)
            #expect(left.unsentMutations == 1 && left.unsentUploads == 1)
        }
    }

    @Test("A closed session signs no user out and empties no quarantine")
    func over() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            session.close()
            await expectCode(.parked) { _ = try await session.signOut(within: soon) }
            await expectCode(.parked) { _ = try await session.emptyQuarantine() }
            #expect(bench.session().state == .signedIn)
        }
    }

    @Test("Signing out says that the server does not know where that has not answered by the deadline")
    func silentServer() async throws {
        try await withSessions { bench in
            let session = try await bench.signedIn()
            bench.provider.behaviour = .hanging
            let left = try await session.signOut(within: .seconds(2))
            #expect(left.isServerTold == false && left.failure?.code == .unreachable)
            #expect(session.state == .signedOut)
            bench.provider.behaviour = .ready
        }
    }

    @Test("A session without an identity provider has no server to tell of a sign-out")
    func nobodyToTell() async throws {
        try await withSessions { bench in
            let session = bench.session(by: nil)
            try await session.signIn(bench.provider.signIn("ada"), within: soon)
            let left = try await session.signOut(within: soon)
            #expect(left.isServerTold == nil && left.failure == nil)
            #expect(session.state == .signedOut)
        }
    }

    @Test("The server has nothing to revoke of a guest who signs out, and counts as told")
    func guest() async throws {
        try await withSessions { bench in
            let session = bench.session()
            #expect(try await session.continueAsGuest(within: soon))
            let left = try await session.signOut(within: soon)
            #expect(left.isServerTold == true && left.failure == nil)
            #expect(session.state == .signedOut)
        }
    }
}
