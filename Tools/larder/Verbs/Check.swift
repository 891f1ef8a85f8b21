import ArgumentParser
import LarderRecords

struct Check: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Looks whether the store's files are as they must be.",
        discussion: """
            Looks at every page, and at every record, reference and index. Changes nothing. A process that writes \
            meanwhile can be mistaken for damage: check again. The exit status is 5 if anything is wrong; each finding \
            is a line.
            """)

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let report = try await store.folder().withCache(.reading, output) { try $0.check() }
        guard report.isSound else {
            let problems = report.problems.map(\.description)
            for problem in problems { output.note(problem) }
            throw Failure(
                .findings, .damaged, "the store is damaged: \(report.problemCount) findings; clear it and fetch again",
                details: [("findingCount", .int(report.problemCount)), ("findings", .strings(problems))])
        }
        let counts = report.counts
        try output.result(
            .object([
                ("isSound", .boolean(true)), ("pages", .int(Int(clamping: counts.pages))),
                ("objects", .int(counts.entities)),
                ("parts", .int(counts.parts)), ("tombstones", .int(counts.tombstones)),
                ("references", .int(counts.references)), ("keys", .int(counts.keys)), ("names", .int(counts.names)),
                ("changes", .int(counts.changes)),
            ]),
            text: "sound: \(counts.pages) pages, \(counts.entities) objects, \(counts.parts) parts, "
                + "\(counts.tombstones) tombstones, \(counts.references) references, \(counts.keys) keys")
    }
}
