import Crypto
import Foundation
import Larder
import LarderAWS
import LarderFiles
import LarderTestSupport
import NIOCore
import Synchronization
import Testing

@Suite("Transfers of programs that are killed", .timeLimit(.minutes(10)))
struct KilledTransferTests {
    /// More of them by the environment, for a long night.
    private static let rounds =
        ProcessInfo.processInfo.environment["LARDER_TRANSFER_ROUNDS"].flatMap { Int($0) } ?? 60
    private static let groups = 4

    @Test(
        "Every transfer ends complete and identical, no part is sent again once it was listed, and nothing is left",
        .enabled(if: TransferProgram.isUsable, "\(TransferProgram.requirement)"), arguments: 0..<groups)
    func killed(group: Int) async throws {
        for round in stride(from: group, to: Self.rounds, by: Self.groups) {
            try await self.round(round, seed: TestSeed.of("killed transfer", round))
        }
    }

    private func round(_ round: Int, seed: UInt64) async throws {
        let note: Comment = "round \(round), seed \(seed)"
        try await withStorage { (server, storage) in
            try await withTemporaryFolder { folder in
                try await Self.round(round, folder, server, storage, SeededNumbers(seed: seed), note)
            }
        }
    }

    private static func round(
        _ round: Int, _ folder: URL, _ server: StorageServer, _ storage: S3Transport, _ seeded: SeededNumbers,
        _ note: Comment
    ) async throws {
        var random = seeded
        let load = try await TransferLoad(folder, server, storage, &random)
        // Half of the rounds over a wire that is as bad as it may be.
        let faults = round % 2 == 0 ? Faults.plans(random.next()) : Faults.none
        let kills = (0..<Int.random(in: 1...4, using: &random)).map { _ in random.next() }
        try await FaultyWire.run(to: server.url.port ?? 0, plan: faults) { wire in
            for kill in kills { try await Self.kill(folder, server, wire.url, SeededNumbers(seed: kill)) }
        }
        let last = try TransferProgram.start(folder, server)
        await last.ended()
        try #require(last.terminationReason == .exit && last.terminationStatus == 0, note)
        try await load.expectWhole(note)
        try expectNothingTwice(folder.appending(path: "ledger"), of: load.inParts, note)
    }

    /// Lets the program run until it has killed itself after a step, or is killed.
    private static func kill(
        _ folder: URL, _ server: StorageServer, _ endpoint: String, _ seeded: SeededNumbers
    ) async throws {
        var random = seeded
        let step = Bool.random(using: &random) ? TransferRunner.KillPoint.allCases.randomElement(using: &random) : nil
        let child = try TransferProgram.start(
            folder, server, endpoint: endpoint,
            step: step.map { ($0.rawValue, Int.random(in: 1...4, using: &random)) })
        let patience = step == nil ? Int.random(in: 20...400, using: &random) : 3000
        let killer = Task {
            try await Task.sleep(for: .milliseconds(patience))
            // Safe: whoever has ended is not waited for before this is cancelled.
            Foundation.kill(child.processIdentifier, SIGKILL)
        }
        await child.ended()
        killer.cancel()
    }

    /// No part is sent after the storage has listed it, as it should be: on a bad wire it may have got another.
    private static func expectNothingTwice(_ ledger: URL, of bytes: [UInt8], _ note: Comment) throws {
        guard let text = try? String(contentsOf: ledger, encoding: .utf8) else { return }
        let tags = stride(from: 0, to: bytes.count, by: 4 << 10).map { start in
            let digest = Insecure.MD5.hash(data: bytes[start..<min(start + (4 << 10), bytes.count)])
            return "\"\(hexadecimal(digest))\""
        }
        var listed: Set<Substring> = []
        for line in text.split(separator: "\n") {
            if let (_, part, number, tag) = line.wholeMatch(of: /listed (\S+ (\d+)) (\S+)/)?.output,
                let index = Int(number), tags.indices.contains(index - 1), tags[index - 1] == tag
            {
                listed.insert(part)
            }
            if let part = line.wholeMatch(of: /send (.*)/)?.1 {
                #expect(!listed.contains(part), "part \(part) was sent again; \(note)")
            }
        }
    }
}

/// What happens on a bad wire.
private enum Faults {
    static let none: FaultyWire.Planner = { _ in nil }

    static func plans(_ seed: UInt64) -> FaultyWire.Planner {
        let numbers = Mutex(SeededNumbers(seed: seed))
        return { head in
            // Whoever may not list uploads, or is told of others, cannot find one whose name was lost to a kill.
            let line = head.prefix { $0 != "\n" }
            let isListing = line.hasPrefix("GET ") && line.contains("uploads=")
            let refusals = WireRefusal.all.filter { !isListing || $0.code != WireRefusal.accessDenied.code }
            return numbers.withLock { random in
                guard Int.random(in: 0..<5, using: &random) == 0 else { return nil }
                let faults: [FaultyWire.Fault] =
                    [.cut, .cut, .delay(.milliseconds(100)), .throttle(200)]
                    + (isListing ? [] : [.corrupt]) + refusals.map { .answer($0) }
                return FaultyWire.Plan(
                    fault: faults.randomElement(using: &random) ?? .cut,
                    side: Bool.random(using: &random) ? .request : .answer,
                    place: .byte(Int.random(in: 0..<5000, using: &random)))
            }
        }
    }
}

/// Files and objects, and what they are to be.
private struct TransferLoad {
    let folder: URL
    let storage: S3Transport
    let server: StorageServer
    let prefix = UUID().uuidString
    private var uploads: [(id: TransferID, location: ObjectLocation, bytes: [UInt8])] = []
    private var downloads: [(id: TransferID, file: URL, bytes: [UInt8])] = []

    init(_ folder: URL, _ server: StorageServer, _ storage: S3Transport, _ random: inout SeededNumbers) async throws {
        self.folder = folder
        self.storage = storage
        self.server = server
        let (store, app) = try Self.open(folder)
        for (name, size) in [("small", 0...4000), ("large", 4097...40_000)] {
            let bytes = Self.bytes(Int.random(in: size, using: &random), &random)
            let file = folder.appending(path: name)
            try Data(bytes).write(to: file)
            let location = ObjectLocation(bucket: server.bucket, key: "\(prefix)/\(name)")
            uploads.append((try await app.transfers.upload(file, to: location).id, location, bytes))
            let object = ObjectLocation(bucket: server.bucket, key: "\(prefix)/there-\(name)")
            _ = try await storage.put(ObjectBody(bytes), to: object, ObjectAttributes(), idle: .ample)
            let copy = folder.appending(path: "copy-\(name)")
            downloads.append((try await app.transfers.download(object, to: copy).id, copy, bytes))
        }
        try store.close()
    }

    private static func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: "type Query { nothing: Int }"))
        return (store, try store.partition())
    }

    private static func bytes(_ count: Int, _ random: inout SeededNumbers) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// What is uploaded in parts.
    var inParts: [UInt8] { uploads.last?.bytes ?? [] }

    /// Each transfer is done and its bytes are there, or it has failed and says why, and is done when it is tried
    /// again.
    func expectWhole(_ note: Comment) async throws {
        let (store, app) = try Self.open(folder)
        for transfer in try app.transfers.all() {
            let status = try transfer.status()
            guard status.state == .failed else {
                #expect(status.state == .done, "\(status); \(note)")
                continue
            }
            #expect(status.failure?.message.isEmpty == false, note)
            try await transfer.retry()
        }
        var options = TransferRunner.Options()
        options.multipartThreshold = 4 << 10
        try await TransferRunner(app, storage: storage, options: options).drain()
        for (id, location, bytes) in uploads {
            #expect(try app.transfers[id].status().state == .done, note)
            #expect(try await storage.bytes(of: location) == bytes, "\(location); \(note)")
        }
        for (id, file, bytes) in downloads {
            #expect(try app.transfers[id].status().state == .done, note)
            #expect(try Array(Data(contentsOf: file)) == bytes, "\(file.lastPathComponent); \(note)")
        }
        let left = try await storage.uploads(
            in: server.bucket, region: nil, prefix: prefix, within: .ample)
        #expect(left.isEmpty, note)
        let partials = try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "store/transfers").path)
        #expect(partials ?? [] == [], note)
        try store.close()
    }
}
