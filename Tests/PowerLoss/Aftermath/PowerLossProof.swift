package import Foundation
internal import Larder
internal import LarderTestSupport

/// Plays a recording back and cuts the power again and again: wherever something was synced or promised, and at some
/// other places.
package struct PowerLossProof: Sendable {
    package struct Result: Sendable {
        /// What is not as it must be, with the place and the kind of the cut.
        package var problems: [String] = []
        package var entries = 0
        package var places = 0
        /// Cuts that left different files.
        package var variants = 0
        /// What was mapped for writing.
        package var mapped: Set<String> = []
    }

    package let recording: Recording
    package let seed: UInt64
    /// One in so many of the places where nothing was synced or promised.
    package var sparsity = 4
    /// How many cuts at a place that are neither all nor nothing.
    package var tornCuts = 1
    /// Syncs of these files never reach the disk, though the program is told so.
    package var isUnsynced: @Sendable (_ path: String) -> Bool = { _ in false }
    /// After so many problems it ends.
    package var patience = 5

    package init(_ recording: Recording, seed: UInt64) {
        (self.recording, self.seed) = (recording, seed)
    }

    package func run(in scratch: URL) async throws -> Result {
        let schema = try Schema(parsing: PowerLossLoad.schema)
        var random = SeededNumbers(seed: seed)
        var disk = Disk(root: recording.root, isUnsynced: isUnsynced)
        var promised = Acknowledged()
        var seen: Set<[Int]> = []
        var result = Result(entries: recording.entries.count)
        for (place, entry) in recording.entries.enumerated() {
            try disk.play(entry)
            if case .mark(let mark) = entry { promised.take(mark) }
            let next = place + 1 < recording.entries.count ? recording.entries[place + 1] : nil
            // Just before a sync most is at stake, and just after a promise.
            let isTurningPoint = next == nil || entry.isTurningPoint || next?.isTurningPoint == true
            guard isTurningPoint || random.next() % UInt64(sparsity) == 0 else { continue }
            result.places += 1
            for cut in PowerCut.all(tornCuts, by: &random) {
                let files = disk.left(by: cut)
                guard seen.insert([files.digest, promised.count]).inserted else { continue }
                result.variants += 1
                let found = try await problems(after: files, promised, schema, scratch, "entry \(place), \(cut)")
                result.problems += found.map { "entry \(place), \(cut): \($0)" }
                if result.problems.count >= patience { return result }
            }
        }
        result.mapped = disk.mapped
        return result
    }

    private func problems(
        after files: RemainingFiles, _ promised: Acknowledged, _ schema: Schema, _ scratch: URL, _ place: String
    ) async throws -> [String] {
        let root = scratch.appending(path: "cut")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        // Where a signal ends the process, this tells which it was.
        try Data("\(place), proof seed \(seed)\n".utf8).write(to: scratch.appending(path: "place"))
        try files.write(to: root)
        let aftermath = Aftermath(folder: root.appending(path: "store"), schema: schema, promised: promised)
        return await aftermath.problems()
    }

    /// Whether the recording, played to its end, is what is in the folder: that nothing was missed.
    package func differences(from folder: URL) throws -> [String] {
        var disk = Disk(root: recording.root, isUnsynced: isUnsynced)
        for entry in recording.entries { try disk.play(entry) }
        let files = disk.left(by: PowerCut(order: .separate, contents: .kept, names: .kept, seed: 0))
        var differences: [String] = []
        for file in files.files where !PowerLossProof.meansNothing(file.path) {
            let real = try? Data(contentsOf: URL(filePath: folder.path + file.path))
            if real != file.bytes { differences.append("\(file.path) is different") }
        }
        let names = FileManager.default.enumerator(atPath: folder.path)?.allObjects.compactMap { $0 as? String } ?? []
        let recorded = Set(files.files.map(\.path) + files.folders)
        for name in names where !recorded.contains("/" + name) { differences.append("\(name) was not recorded") }
        if recorded.count != names.count { differences.append("there are \(names.count) names and not \(recorded.count)") }
        return differences
    }

    /// Files that are shared memory: written through mappings, and made anew by the first who opens them.
    package static func meansNothing(_ path: String) -> Bool { path.hasSuffix("-shm") || path.hasSuffix("/lock.mdb") }
}
