import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import Synchronization

/// Makes garbage beside what is needed, and collects it or evicts all that may go, in slices of next to nothing, until it
/// is killed in one.
struct Collecting {
    static let schema = """
        type Query @fieldPolicy(forField: "node", keyArgs: ["id"]) { nodes(of: Int!): [Node!]! node(id: ID!): Node }
        type Node { id: ID! name: String next: Node }
        """

    static func list(_ number: Int) -> GraphQLOperation {
        GraphQLOperation("{ nodes(of: \(number)) { id name next { id name } } }")
    }

    static func node(_ id: Int) -> GraphQLOperation {
        GraphQLOperation("{ node(id: \(id)) { id name next { id name } } }")
    }

    let folder: URL

    /// Says which object is pinned, and when the collection or eviction is done.
    ///
    /// - Parameter slice: After which the program kills itself.
    func run(seed: UInt64, killedAfter slice: Int, evicting: Bool) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
        let app = try store.partition()
        let pinned = try await fill(app, &random)
        try await app.pin(named: "kept", Self.node(pinned))
        _ = try await fill(app, &random)
        say("pinned \(pinned)")
        let slices = Atomic(0)
        @Sendable func ended() {
            guard slices.add(1, ordering: .relaxed).newValue == slice else { return }
            kill(getpid(), SIGKILL)
            sleep(3600)
        }
        if evicting {
            do { _ = try await app.evict(0, nil, sliceTime: .zero, progress: ended) } catch {
                // What is pinned takes more than nothing.
                guard error.code.rawValue == RecordError.Code.full.rawValue else { throw error }
            }
        } else {
            _ = try await app.collectGarbage(sliceTime: .zero) { _ in ended() }
        }
        say("done")
        try store.close()
    }

    /// - Returns: One of the objects.
    private func fill(_ app: Partition, _ random: inout SeededNumbers) async throws -> Int {
        var last = 0
        for list in 0..<2 {
            let nodes = (0..<12).map { _ in
                let (id, next) = (Int(random.next() % 150), Int(random.next() % 150))
                last = id
                return #"{"id":"\#(id)","name":"n\#(id)","next":{"id":"\#(next)","name":"n\#(next)"}}"#
            }
            try await app.write(Self.list(list), json: Array("{\"nodes\":[\(nodes.joined(separator: ","))]}".utf8))
        }
        return last
    }
}
