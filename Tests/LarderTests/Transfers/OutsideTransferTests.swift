import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite(
    "Transfers by another process, of programs that are killed",
    .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), .timeLimit(.minutes(10)))
struct OutsideTransferTests {
    private static let kills = 100

    @Test("After many kills every upload was sent once, and every download is in its place")
    func killed() async throws {
        let seed = TestSeed.of("outside uploads", 1)
        let note: Comment = "seed \(seed)"
        try await withTemporaryFolder { folder in
            var random = SeededNumbers(seed: seed)
            let (place, outside) = (folder.appending(path: "store"), folder.appending(path: "outside"))
            let end = Pipe.uninherited()
            let sender = try ChildProgram.start(place, ["outside", outside.path, "\(seed)"], input: end)
            var uploads: [(id: TransferID, file: URL)] = []
            var downloads: [(id: TransferID, file: URL, source: URL)] = []
            for kill in 0..<Self.kills {
                let last = uploads.suffix(2)
                uploads += try await queue(["\(kill)-a", "\(kill)-b"], in: place, folder, &random)
                downloads += try await queueDownloads(of: last.map(\.file), in: place, outside)
                try await killProgram(place, outside, &random)
            }
            let last = try ChildProgram.start(place, ["carry-outside", outside.path], input: Pipe.uninherited())
            await last.ended()
            try #require(last.terminationReason == .exit && last.terminationStatus == 0, note)
            kill(sender.processIdentifier, SIGKILL)
            await sender.ended()
            let sent = try ChildProgram.lines(of: outside.appending(path: "ledger")).filter { $0.hasPrefix("sent") }
            #expect(Set(sent).count == uploads.count && sent.count == uploads.count, note)
            let jobs = try FileManager.default.contentsOfDirectory(atPath: outside.appending(path: "jobs").path)
            // A program that is killed while it writes leaves a file of another name.
            #expect(!jobs.contains { UUID(uuidString: $0) != nil }, note)
            let store = try Self.open(place)
            let app = try store.partition()
            for upload in uploads {
                #expect(try app.transfers[upload.id].status().state == .done, note)
                let object = outside.appending(path: "objects/\(upload.file.lastPathComponent)")
                #expect(try Data(contentsOf: object) == Data(contentsOf: upload.file), note)
            }
            for download in downloads {
                #expect(try app.transfers[download.id].status().state == .done, note)
                #expect(try Data(contentsOf: download.file) == Data(contentsOf: download.source), note)
            }
            let left = try FileManager.default.contentsOfDirectory(atPath: place.appending(path: "transfers").path)
            #expect(left.isEmpty, note)
            try store.close()
            try expectSound(place)
        }
    }

    private static func open(_ place: URL) throws -> Store {
        try Store.open(at: place, schema: try Schema(parsing: "type Query { nothing: Int }"))
    }

    private func queue(
        _ names: [String], in place: URL, _ folder: URL, _ random: inout SeededNumbers
    ) async throws -> [(TransferID, URL)] {
        let store = try Self.open(place)
        let app = try store.partition()
        var queued: [(TransferID, URL)] = []
        for name in names {
            let file = folder.appending(path: name)
            let bytes = (0..<Int.random(in: 0...4000, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            try Data(bytes).write(to: file)
            queued.append((try await app.transfers.upload(file, to: ObjectLocation(bucket: "b", key: name)).id, file))
        }
        try store.close()
        return queued
    }

    /// Queues downloads of what was sent by now.
    private func queueDownloads(
        of sources: [URL], in place: URL, _ outside: URL
    ) async throws -> [(TransferID, URL, URL)] {
        let store = try Self.open(place)
        let app = try store.partition()
        var queued: [(TransferID, URL, URL)] = []
        for source in sources {
            let key = source.lastPathComponent
            guard FileManager.default.fileExists(atPath: outside.appending(path: "objects/\(key)").path) else {
                continue
            }
            let file = source.appendingPathExtension("down")
            let location = ObjectLocation(bucket: "b", key: key)
            queued.append((try await app.transfers.download(location, to: file).id, file, source))
        }
        try store.close()
        return queued
    }

    /// Lets the program run until it has killed itself after a step, or is killed.
    private func killProgram(_ place: URL, _ outside: URL, _ random: inout SeededNumbers) async throws {
        let steps = ["begun", "handedOver", "objectMade", "partNoted", "fileMoved", "finished"]
        var arguments = ["carry-outside", outside.path]
        let isKilled = Int.random(in: 0..<3, using: &random) == 0
        if !isKilled {
            arguments += [steps.randomElement(using: &random) ?? "", "\(Int.random(in: 1...2, using: &random))"]
        }
        let end = Pipe.uninherited()
        let child = try ChildProgram.start(place, arguments, input: end)
        let time = isKilled ? Int.random(in: 10...200, using: &random) : 3000
        let killer = Task {
            try await Task.sleep(for: .milliseconds(time))
            // Safe: a process that has ended is not waited for before this is cancelled.
            Foundation.kill(child.processIdentifier, SIGKILL)
        }
        await child.ended()
        killer.cancel()
    }
}
