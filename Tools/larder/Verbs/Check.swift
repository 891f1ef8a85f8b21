import ArgumentParser
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords

struct Check: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Looks whether the store's files are as they must be.",
        discussion: """
            Looks at every page, and at every record, reference and index; and in larder.sqlite, where the store has \
            one, at every page and row. Changes nothing. A process that writes meanwhile can be mistaken for damage: \
            check again. The exit status is 5 if anything is wrong; each finding is a line. Files that other users may \
            use are told of, and are no damage.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions

    func perform(_ output: Output) async throws {
        let folder = try store.folder(partition)
        let exposure = StoreExposure(of: folder.url, folder.files)
        output.noteFinding(exposure)
        // What cannot be fetched again is looked at in any case.
        let (records, cacheProblems) = try await checkCache(folder, output)
        let (queue, queueProblems) = try await checkQueue(folder, output)
        let problems = cacheProblems + queueProblems
        guard problems.isEmpty else {
            for problem in problems { output.note(problem) }
            let count = (records?.problemCount ?? cacheProblems.count) + queueProblems.count
            var remedies: [String] = []
            if !cacheProblems.isEmpty { remedies.append("clear it and fetch again") }
            if !queueProblems.isEmpty {
                remedies.append("larder.sqlite cannot be fetched again: restore a backup, or repair it into a new file")
            }
            throw Failure(
                .findings, .damaged,
                "The store is damaged: \(count.counted("finding")); " + remedies.joined(separator: "; "),
                details: [("findingCount", .int(count)), ("findings", .strings(problems)), exposure.member])
        }
        let counts = records?.counts
        let members: [(name: String, value: JSONText)] = [
            ("isSound", .boolean(true)), ("hasCache", .boolean(records != nil)),
            ("pages", .int(Int(clamping: counts?.pages ?? 0))), ("objects", .int(counts?.entities ?? 0)),
            ("parts", .int(counts?.parts ?? 0)), ("tombstones", .int(counts?.tombstones ?? 0)),
            ("references", .int(counts?.references ?? 0)), ("keys", .int(counts?.keys ?? 0)),
            ("names", .int(counts?.names ?? 0)), ("changes", .int(counts?.changes ?? 0)),
            ("mutations", .int(queue?.mutations ?? 0)), ("outcomes", .int(queue?.outcomes ?? 0)),
            ("watchers", .int(queue?.watchers ?? 0)), exposure.member,
        ]
        try output.result(
            .object(members),
            text: (counts.map {
                "sound: \($0.pages.counted("page")), \($0.entities.counted("object")), \($0.parts.counted("part")), "
                    + "\($0.tombstones.counted("tombstone")), \($0.references.counted("reference")), "
                    + $0.keys.counted("key")
            } ?? "sound: the partition \(folder.partition) has no cache")
                + (queue.map {
                    ", \($0.mutations.counted("mutation")), \($0.outcomes.counted("outcome")), "
                        + $0.watchers.counted("watcher")
                } ?? ""))
    }

    /// Nil where a store has a queue alone, or where the cache cannot be opened for its damage, which is a problem like
    /// others.
    private func checkCache(
        _ folder: StoreFolder, _ output: Output
    ) async throws -> (report: CheckReport?, problems: [String]) {
        guard try folder.isStore || !folder.hasQueue else { return (nil, []) }
        do {
            let report = try await folder.withCache(.reading, checksItself: true, output) { try $0.check() }
            return (report, report.problems.map(\.description))
        } catch {
            let failure = Failure(error)
            guard failure.exit == .damaged else { throw error }
            return (nil, [failure.message])
        }
    }

    /// Nil where nothing was ever queued or watched, or where the file cannot be opened for its damage, which is a
    /// problem like others.
    private func checkQueue(
        _ folder: StoreFolder, _ output: Output
    ) async throws -> (report: OperationsCheck?, problems: [String]) {
        do {
            let report = try await folder.withOperations(.reading, output) { try $0.check() }
            return (report, (report?.problems ?? []).map { "larder.sqlite: \($0)" })
        } catch {
            let failure = Failure(error)
            guard failure.exit == .damaged else { throw error }
            return (nil, [failure.message])
        }
    }
}
