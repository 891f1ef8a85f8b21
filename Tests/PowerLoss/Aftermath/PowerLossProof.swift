package import Foundation
import Larder
import LarderTestSupport

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
    package var sparsity = 24
    /// How many cuts at a place that are neither all nor nothing.
    package var tornCuts = 1
    /// These cuts instead of those.
    package var cuts: [PowerCut]?
    /// Only after these entries, wherever they are.
    package var isMeant: (@Sendable (RecordedEntry) -> Bool)?
    /// Not before so many entries.
    package var beginning = 0
    /// Only after a sync that failed.
    package var isOfFailedSyncs = false
    /// What had been marked before the recording began.
    package var earlierMarks: [String] = []
    /// Syncs of these files never reach the disk, though the program is told so.
    package var isUnsynced: @Sendable (_ path: String) -> Bool = { _ in false }
    /// After so many problems it ends.
    package var patience = 5
    /// Looks into what a cut has left, and says what is not as it must be.
    package var inspect: @Sendable (Remains) async throws -> [String] = { try await recipes($0) }

    /// What is not as it must be after a `PowerLossLoad`.
    package static func recipes(_ remains: Remains) async throws -> [String] {
        var promised = Acknowledged()
        for mark in remains.marks { promised.take(mark) }
        return await Aftermath(
            folder: remains.root.appending(path: "store"), schema: try Schema(parsing: PowerLossLoad.schema),
            promised: promised, hasVisitor: remains.place % 2 == 0
        ).problems()
    }

    package init(_ recording: Recording, seed: UInt64) {
        (self.recording, self.seed) = (recording, seed)
    }

    /// A store as one cut leaves it.
    private struct Case: Sendable {
        let place: Int
        let cut: PowerCut
        let files: RemainingFiles
        let marks: [String]
    }

    package func run(in scratch: URL) async throws -> Result {
        let width = ProcessInfo.processInfo.activeProcessorCount
        var random = SeededNumbers(seed: seed)
        var disk = Disk(root: recording.root, isUnsynced: isUnsynced)
        var marks = earlierMarks
        var promises = 0
        var hasFailed = false
        var seen: Set<[Int]> = []
        var result = Result(entries: recording.entries.count)
        try await withThrowingTaskGroup(of: [String].self) { group in
            for (place, entry) in recording.entries.enumerated() {
                try disk.play(entry)
                if case .mark(let mark) = entry {
                    marks.append(mark)
                    if !Marks.isAnnouncement(mark) { promises += 1 }
                }
                if case .failedSync = entry { hasFailed = true }
                guard place >= beginning, hasFailed || !isOfFailedSyncs, isWorthACut(place, &random) else { continue }
                result.places += 1
                for cut in cuts ?? PowerCut.all(tornCuts, by: &random) {
                    let files = disk.left(by: cut)
                    // The same files before an announcement had to keep as much, and were allowed less.
                    guard seen.insert([files.digest, promises]).inserted else { continue }
                    if result.variants >= width { result.problems += try await group.next() ?? [] }
                    let this = Case(place: place, cut: cut, files: files, marks: marks)
                    let folder = scratch.appending(path: "cut \(result.variants)")
                    group.addTask { try await problems(of: this, folder) }
                    result.variants += 1
                }
                if result.problems.count >= patience { break }
            }
            for try await problems in group { result.problems += problems }
        }
        result.mapped = disk.mapped
        return result
    }

    /// Just before a sync most is at stake, and just after a promise. Just before a promise less was promised.
    private func isWorthACut(_ place: Int, _ random: inout SeededNumbers) -> Bool {
        if let isMeant { return isMeant(recording.entries[place]) }
        guard place + 1 < recording.entries.count else { return true }
        let next = recording.entries[place + 1]
        if case .mark = next { return false }
        return recording.entries[place].isTurningPoint || next.isTurningPoint || random.next() % UInt64(sparsity) == 0
    }

    private func problems(of this: Case, _ folder: URL) async throws -> [String] {
        let place = "entry \(this.place), \(this.cut)"
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // Where a signal ends the process, this tells which it was.
        try Data("\(place), proof seed \(seed)\n".utf8).write(to: folder.appending(path: "place"))
        let root = folder.appending(path: "root")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        try this.files.write(to: root)
        let remains = Remains(
            root: root, recordedRoot: recording.root,
            paths: Dictionary(this.files.files.map { ($0.inode, $0.path) }) { $1 }, marks: this.marks,
            isAll: this.cut.contents == .kept && this.cut.names == .kept, place: this.place)
        return try await inspect(remains).map { "\(place): \($0)" }
    }

    /// The places where something was synced or promised.
    package var turningPoints: [Int] { recording.entries.indices.filter { recording.entries[$0].isTurningPoint } }

    /// Writes what one cut leaves into an empty folder.
    package func write(_ cut: PowerCut, at place: Int, to root: URL) throws -> Remains {
        var disk = Disk(root: recording.root, isUnsynced: isUnsynced)
        var marks = earlierMarks
        for entry in recording.entries[...place] {
            try disk.play(entry)
            if case .mark(let mark) = entry { marks.append(mark) }
        }
        let files = disk.left(by: cut)
        try files.write(to: root)
        return Remains(
            root: root, recordedRoot: recording.root,
            paths: Dictionary(files.files.map { ($0.inode, $0.path) }) { $1 }, marks: marks,
            isAll: cut.contents == .kept && cut.names == .kept, place: place)
    }

    /// Whether the recording, played to its end, is what is in the folder: that nothing was missed.
    package func differences(from folder: URL) throws -> [String] {
        var disk = Disk(root: recording.root, isUnsynced: isUnsynced)
        for entry in recording.entries { try disk.play(entry) }
        let files = disk.seen()
        var differences: [String] = []
        for file in files.files where !PowerLossProof.meansNothing(file.path) {
            let real = try? Data(contentsOf: URL(filePath: folder.path + file.path))
            if real != file.bytes { differences.append("\(file.path) is different") }
        }
        let names = FileManager.default.enumerator(atPath: folder.path)?.allObjects.compactMap { $0 as? String } ?? []
        let recorded = Set(files.files.map(\.path) + files.folders)
        for name in names where !recorded.contains("/" + name) { differences.append("\(name) was not recorded") }
        if recorded.count != names.count {
            differences.append("there are \(names.count) names and not \(recorded.count)")
        }
        return differences
    }

    /// Files that are shared memory: written through mappings, and made anew by the first who opens them.
    package static func meansNothing(_ path: String) -> Bool { path.hasSuffix("-shm") || path.hasSuffix("/lock.mdb") }
}
