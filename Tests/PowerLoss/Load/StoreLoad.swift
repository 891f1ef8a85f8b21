package import Foundation
package import Larder
import LarderOperations

/// What a program and its tools do to a whole store: switch, sign in, change the program's key, queue side by side,
/// store a record of many pages, forget an environment, bring a backup back, repair.
///
/// What it was promised it marks at once:
///
/// ```
/// accepted ID NAME     enqueue has returned, under that environment
/// going NAME           from here on that environment may be the current one
/// at NAME              it is
/// signing NAME N       from here on its credentials may be those
/// signed NAME N        they are
/// stored SIZE          the large record has so many characters, after a clean close
/// forgetting NAME      from here on nothing of it may be there
/// forgot NAME          nothing is
/// restored, repaired   that has ended
/// ```
package struct StoreLoad: Sendable {
    package static let large = GraphQLFragment("fragment L on Recipe { title }")
    package static let environments = ["a", "b"]

    package let folder: URL
    package let marks: Marks

    package init(folder: URL, marks: Marks) { (self.folder, self.marks) = (folder, marks) }

    package static func environment(_ name: String) throws -> BackendEnvironment {
        guard let url = URL(string: "https://\(name).example/graphql") else { throw CocoaError(.fileReadUnknown) }
        return BackendEnvironment(name: name, api: .init(url: url))
    }

    package func run() async throws {
        try await live(["a", "b"], size: 20_000)
        let backups = folder.deletingLastPathComponent().appending(path: "backups")
        let backup = try StoreBackup.make(of: folder, into: backups)
        try await live(["a"], size: 30_000)
        do {
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            _ = try StoreRestoration.bringBack(backup, to: folder, backingUpInto: nil, holding: lock)
            marks("restored")
        }
        try await live(["b"], size: 9_000)
        do {
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            _ = try OperationsDatabase.repair(folder: folder, holding: lock)
            marks("repaired")
        }
        try await live(["a"], size: 12_000)
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        marks("forgetting", "b")
        try await store.forget(environment: "b", losingUnsent: true)
        marks("forgot", "b")
        try store.close()
    }

    /// The same until a disk fails; then it ends at once, as if it were killed.
    package func runUntilFailure() async {
        do { try await run() } catch {
            marks("failed", "\(error)".replacing("\n", with: " "))
            _exit(0)
        }
    }

    /// Goes on with a store in which a disk has failed.
    package func recover() async throws { try await live(["a"], size: 12_000) }

    /// Goes through environments, and closes the store.
    private func live(_ names: [String], size: Int) async throws {
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        for (number, name) in names.enumerated() {
            marks("going", name)
            let app = try await store.switch(to: try Self.environment(name), pending: .park).partition
            marks("at", name)
            marks("signing", name, "\(size + number)")
            try await app.session.signIn(
                Credentials(userPool: .init(idToken: "\(size + number)", accessToken: "", expires: nil)),
                within: .seconds(60))
            marks("signed", name, "\(size + number)")
            if number == 0 { _ = try await store.rotateKeys(within: .seconds(60)) }
            try await queue(app, name)
            let title = String(repeating: "x", count: size)
            try await app.write("Recipe:large", Self.large, ["title": .string(title)])
        }
        try store.close()
        if let name = names.last { marks("stored", name, "\(size)") }
    }

    /// Queues from several tasks at once.
    private func queue(_ app: Partition, _ name: String) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask { [marks] in
                    let receipt = try await app.enqueue(
                        GraphQLOperation(
                            "mutation Add($title: String!) { add(title: $title) { id } }",
                            variables: ["title": .string("\(number)")]))
                    marks("accepted", "\(receipt.id)", name)
                }
            }
            try await group.waitForAll()
        }
    }
}
