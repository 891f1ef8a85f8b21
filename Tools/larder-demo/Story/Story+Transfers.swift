import Foundation
import Larder
import LarderAWS
import ObjectServer

extension Story {
    /// Bytes of the file: of parts of 8 MiB, 24, of which the last is smaller.
    private static let size = 200_000_000
    private static let parts = 24
    /// After so many parts that have arrived a sender is killed, after so many ranges that were asked for a receiver:
    /// of these some are under way, and are asked for again.
    private static let (kills, receiverKills) = ([7, 15], [10, 22])
    /// Exchanges that a killed process may have had under way.
    private static let side = TransferRunner.Options().connectionsPerHost
    private static let location = ObjectLocation(bucket: ObjectServer.bucket, key: "videos/supper.mov")

    /// Sends a large file there and back, with a storage and files that are gone afterwards.
    func transfer() async throws {
        let name = String(UInt32.random(in: .min ... .max), radix: 36)
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-demo-files-\(name)")
        let objects = folder.appending(path: "objects")
        try FileManager.default.createDirectory(at: objects, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let storage = try await ObjectServer.start(keeping: .files(objects))
        do {
            let source = folder.appending(path: "supper.mov")
            try Self.makeFile(source)
            try await upload(source, storage)
            try await download(to: folder.appending(path: "again.mov"), like: source, storage)
        } catch {
            try? await storage.stop()
            throw error
        }
        try await storage.stop()
    }

    private func upload(_ source: URL, _ storage: ObjectServer) async throws {
        printout.step(19, "A file of 200 MB goes up, and its sender is killed twice")
        let queueing = try await timed { try await app.transfers.upload(source, to: Self.location) }
        let id = queueing.result.id
        try store.close()
        for count in Self.kills {
            _ = try await KilledChild.runAndKill(.carrier, store: folder, server: storage.url, claims: claims) { _ in
                storage.shelf.counts.parts >= count
            }
        }
        let opening = try await timed {
            try open()
            return try claims.require("the transfer is known at once", try app.transfers.list().first { $0.id == id })
        }
        try claims.expect("it has not arrived", storage.shelf.object(Self.path) == nil, else: "the object")
        let sent = storage.shelf.counts.parts
        let start = SuspendingClock.now
        let (outcome, first) = try await ObjectServer.withTransport(to: storage.url) { transport in
            let running = Task { [app] in try await TransferRunner(app, storage: transport).drain() }
            let first = try await waiting(for: "the first byte after the kills") {
                storage.shelf.counts.parts > sent ? start.duration(to: .now) : nil
            }
            let outcome = try await app.transfers[id].outcome(within: patience)
            try await running.value
            return (outcome, first)
        }
        let counts = storage.shelf.counts
        try claims.expect("it is done", outcome.isDone, is: true)
        try claims.expect("no part was sent again that the storage had listed", counts.needless, is: 0)
        try claims.expect(
            "no more was sent again than was under way", counts.parts <= Self.parts + Self.kills.count * Self.side,
            else: "\(counts.parts) parts")
        try claims.expect("nothing unfinished is left at the storage", storage.shelf.unfinishedUploads, is: 0)
        let object = try claims.require("the object is there", storage.shelf.object(Self.path))
        try claims.expect("it has as many bytes", object.size, is: Self.size)
        try claims.expect(
            "they are the file's", try Self.isSame(source) { try object.read($0) }, is: true)

        printout.say(
            "a small storage in this process, which speaks as S3 does and looks at no signatures; a child process "
                + "sends to it, and gets SIGKILL after \(Self.kills[0]) parts of \(Self.parts); so does the next, "
                + "after \(Self.kills[1])")
        printout.fact("queued, and durable, after", queueing.duration)
        printout.fact("opening after the second death, and listing it", opening.duration)
        printout.fact("going on; the first part has arrived after", first)
        printout.fact("parts that the storage had listed, and that were sent again", counts.needless)
        printout.fact("parts that have arrived in all, for \(Self.parts)", counts.parts)
        printout.fact("what the storage has, compared byte by byte", "the same")
    }

    private func download(to file: URL, like source: URL, _ storage: ObjectServer) async throws {
        printout.step(20, "And comes down again, the same way")
        let transfer = try await app.transfers.download(Self.location, to: file)
        try store.close()
        let before = storage.shelf.counts.ranges
        for count in Self.receiverKills {
            _ = try await KilledChild.runAndKill(.carrier, store: folder, server: storage.url, claims: claims) { _ in
                storage.shelf.counts.ranges - before >= count
            }
            try claims.expect(
                "nothing is in its place before all is", FileManager.default.fileExists(atPath: file.path), is: false)
        }
        try open()
        let known = try app.transfers[transfer.id].status()
        let asked = storage.shelf.counts.ranges
        try await ObjectServer.withTransport(to: storage.url) { transport in
            try await TransferRunner(app, storage: transport).drain()
        }
        let partSize = Int64(8 << 20)
        let missing = Int((Int64(Self.size) - known.arrived + partSize - 1) / partSize)
        let status = try app.transfers[transfer.id].status()
        try claims.expect("it is done", status.state, is: .done)
        try claims.expect("some had arrived", known.arrived > 0, else: "nothing")
        try claims.expect("what had arrived was not asked for again", storage.shelf.counts.ranges - asked, is: missing)
        try claims.expect("it is the file", try Self.isSame(source) { try Self.bytes($0, of: file) }, is: true)
        let partial = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "transfers").path)
        try claims.expect("no partial file is left", partial, is: [])

        printout.say(
            "two child processes receive it, and get SIGKILL after \(Self.receiverKills[0]) and "
                + "\(Self.receiverKills[1]) ranges were asked for; this one goes on")
        printout.fact("had arrived when the second process was killed", Figures.text(bytes: Int(known.arrived)))
        printout.fact("ranges asked for after that, of \(Self.parts)", missing)
        printout.fact("the file, in its place in one step, compared byte by byte", "the same")
    }

    // MARK: Files

    private static var path: String { "/\(location.bucket)/\(location.key)" }
    private static let block = 1 << 20

    /// Blocks that are all different, of bytes that are.
    private static func makeFile(_ url: URL) throws {
        try Data().write(to: url)
        let file = try FileHandle(forWritingTo: url)
        defer { try? file.close() }
        var numbers = SystemRandomNumberGenerator()
        var bytes = Data(count: block)
        for offset in stride(from: 0, to: block, by: 8) {
            withUnsafeBytes(of: numbers.next()) { bytes.replaceSubrange(offset..<offset + 8, with: $0) }
        }
        for offset in stride(from: 0, to: size, by: block) {
            withUnsafeBytes(of: offset.littleEndian) { bytes.replaceSubrange(0..<8, with: $0) }
            try file.write(contentsOf: bytes.prefix(min(block, size - offset)))
        }
    }

    private static func bytes(_ range: Range<Int>, of url: URL) throws -> Data {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(range.lowerBound))
        return try file.read(upToCount: range.count) ?? Data()
    }

    /// Whether a file has the bytes that `other` gives, and no others.
    private static func isSame(_ url: URL, _ other: (Range<Int>) throws -> Data) throws -> Bool {
        let step = 8 << 20
        for offset in stride(from: 0, through: size, by: step) {
            // One byte past the end as well: neither has it.
            let range = offset..<(offset + step)
            guard try bytes(range, of: url) == other(range) else { return false }
        }
        return true
    }
}
