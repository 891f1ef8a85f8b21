import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

private let title = GraphQLFragment("fragment F on Recipe { title }")

private func open(_ folder: URL, _ change: (inout Store.Options) -> Void = { _ in }) throws -> Store {
    var options = Store.Options()
    options.keys = InMemoryKeyProvider()
    options.logger.logLevel = .critical
    change(&options)
    return try Store.open(at: folder, schema: try Schema(parsing: kitchenSchema), options: options)
}

extension OperationsDatabase {
    fileprivate func enter(_ name: String) async throws {
        try await environments.enter(
            Destination(environment: .draft(backend(name).draft), user: .guest, newName: "partition-of-\(name)"),
            leaving: .park, now: Date())
    }
}

@Suite("What happens while a store looks elsewhere", .timeLimit(.minutes(2)))
struct LateChangeTests {
    @Test("A program that names no environment has its identity provider before anything was stored")
    func unnamedProvider() async throws {
        try await withTemporaryFolder { folder in
            let identities = InMemoryIdentityProvider(lifetime: 1)
            let store = try open(folder.appending(path: "store")) { $0.identityProvider = { _ in identities } }
            let app = try store.partition()
            try await app.session.signIn(identities.signIn("ada"), deadline: soon)
            _ = try await app.session.credentials(deadline: soon)
            #expect(identities.refreshes == 1)
            try store.close()
        }
    }
}

extension Partition {
    fileprivate func requireNotParked() throws { try core.requireCurrent() }
}
