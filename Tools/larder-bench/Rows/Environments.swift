import Crypto
import Foundation
import Larder
import LarderLMDB
import LarderOperations
import LarderRecords
import LarderTesting

extension Bench {
    private func environment(_ name: String) throws -> BackendEnvironment {
        guard let url = URL(string: "https://\(name).example/graphql") else { throw BenchFailure("a URL is none") }
        return BackendEnvironment(name: name, api: .init(url: url))
    }

    /// A store as a program finds it that has been used for long: opened, and read for the first time.
    func coldStart() async throws -> [BenchRow] {
        [
            try await coldStart(
                "cold-start", showing: true, what: "10,000 pending and all of them shown, 100 watchers, a session"),
            try await coldStart(
                "cold-start-plain", showing: false,
                what: "10,000 pending and none of them shown, 100 watchers, a session"),
        ]
    }

    /// - Parameter isShown: Whether the mutations say what they are expected to do.
    private func coldStart(_ row: String, showing isShown: Bool, what: String) async throws -> BenchRow {
        let (pending, watchers) = (10_000, 100)
        let records = min(largest, 1_000_000)
        let path = freshPath("cold")
        defer { remove(path) }
        let home = try environment("home")
        let schema = try Schema(parsing: ItemShop.schemaText)
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        let openOptions = options
        func open() throws -> (Store, Partition) {
            let store = try Store.open(at: URL(filePath: path), schema: schema, options: openOptions)
            return (store, try store.partition(of: home))
        }
        let (first, app) = try open()
        try await ItemShop().fill(app.records, 0..<records)
        try await fill(app, pending, isShown)
        for number in 0..<watchers {
            _ = try await app.watch(
                named: "watcher \(number)", GraphQLOperation("{ item(id: \(number)) { title } }"))
        }
        try await app.session.signIn(InMemoryIdentityProvider().signIn("ada"), within: .seconds(5))
        try first.close()
        let bare = try BareQueue(file: "\(path)/bare.sqlite")
        try bare.insert((0..<pending).map(RatingDesk.draft))
        let fragment = GraphQLFragment("fragment F on Item { title }")
        let times = try await Measurement.times(
            rounds: max(rounds / 2, 3),
            [
                {
                    var opened: Store?
                    let time = try Measurement.time {
                        let (store, app) = try open()
                        opened = store
                        let title = try app.read("Item:77", fragment)["title"]?.string
                        guard (title == ItemShop.newTitle) == isShown else {
                            throw BenchFailure("the mutation is not seen, or is")
                        }
                    }
                    try opened?.close()
                    return time
                },
                { try Measurement.time { keep(try bare.readAll()) } },
            ])
        return BenchRow(
            name: row, what: "\(records) records, \(what): to the first read", times,
            floorName: "the rows of the 10,000 read once", reach: .most(0.030))
    }

    /// Queues so many mutations in a partition.
    private func fill(_ app: Partition, _ count: Int, _ isShown: Bool) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            // As many side by side as make the commits few.
            for task in 0..<64 {
                group.addTask {
                    for number in stride(from: task, to: count, by: 64) {
                        try await ItemShop.rename(number, in: app, isShown: isShown)
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    /// From one environment to another and back, each with data, a mutation and a watcher.
    func switching() async throws -> [BenchRow] {
        let path = freshPath("switch")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: try Schema(parsing: ItemShop.schemaText))
        let names = ["a", "b"]
        for name in names {
            let app = try await store.switch(to: environment(name)).partition
            try await ItemShop().fill(app.records, 0..<10_000)
            try await fill(app, 100, true)
        }
        // The last that was entered is the current one.
        var number = 1
        let fragment = GraphQLFragment("fragment F on Item { title }")
        let bare = try BareQueue(file: "\(path)/bare.sqlite")
        let times = try await Measurement.times(
            rounds: rounds * 2,
            [
                {
                    number += 1
                    let name = names[number % 2]
                    return try await Measurement.time {
                        let app = try await store.switch(to: environment(name)).partition
                        guard try app.read("Item:77", fragment)["title"]?.string == ItemShop.newTitle else {
                            throw BenchFailure("the mutation is not seen")
                        }
                    }
                },
                { try Measurement.time { try bare.insert(RatingDesk.draft(0)) } },
            ])
        try store.close()
        return [
            BenchRow(
                name: "switch", what: "another environment, 100 mutations pending in each, to its first read", times,
                floorName: "one INSERT, durable", reach: .most(0.020))
        ]
    }

    /// What protects a credential at rest, without reading or writing it.
    func seal() async throws -> [BenchRow] {
        let owner = SealedBytes.Owner.credential(of: "0123456789abcdef", identity: "identity")
        let key = SymmetricKey(size: .bits256)
        // As large as the tokens are together that a user pool issues.
        let bytes = [UInt8](repeating: 120, count: 4_000)
        let times = try await Measurement.times(
            rounds: rounds,
            [
                {
                    try Measurement.time(repeating: 100) {
                        let sealed = try SealedBytes.seal(bytes, of: owner, name: "userPool", with: key)
                        keep(try SealedBytes.open(sealed, of: owner, name: "userPool", with: key))
                    }
                },
                {
                    try Measurement.time(repeating: 100) {
                        let box = try AES.GCM.seal(bytes, using: key)
                        keep(try AES.GCM.open(box, using: key))
                    }
                },
            ])
        return [
            BenchRow(
                name: "seal", what: "\(bytes.count) bytes of credentials sealed and opened", times,
                floorName: "AES-GCM of the same bytes", reach: .most(0.000_050))
        ]
    }
}
