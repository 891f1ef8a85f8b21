import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Changes: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Prints which objects each commit changed.",
        discussion: """
            One commit a line: its number, and the cache keys of the objects that it changed. The cache keeps the last \
            thousand. With --follow, what is committed later too, by whatever process, until it is interrupted or has \
            printed --count lines. A line that says "everything" stands for what is not in the log any more, as after \
            clear and compact, which may have lost what was committed just before.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @Option(help: ArgumentHelp("Only those after this number.", valueName: "n"))
    var since: UInt64?
    @Flag(help: "Go on with what is committed from now on.")
    var follow = false
    @Option(help: ArgumentHelp("End after so many lines.", valueName: "n"))
    var count: Int?

    func validate() throws {
        guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
    }

    func perform(_ output: Output) async throws {
        let interruption = Interruption()
        try await store.folder(partition).withCache(.reading, output) { cache in
            var told = 0
            var last = try since.map { ChangePosition(epoch: try cache.position.epoch, number: $0) }
            while true {
                let log = try cache.inspect.changes(after: last)
                let found = log.changes
                if follow {
                    for change in found.prefix(count.map { $0 - told } ?? .max) {
                        try output.result(change.json, text: change.line)
                        told += 1
                    }
                    if told == count { return }
                } else {
                    let shown = found.prefix(count ?? .max)
                    return try output.result(
                        .object([
                            ("epoch", .string(String(log.position.epoch, radix: 16))),
                            ("changes", .array(shown.map(\.json))),
                            ("hasMore", .boolean(shown.count < found.count)),
                        ]),
                        text: shown.map(\.line).joined(separator: "\n"))
                }
                // A number that was asked for may not have been reached yet.
                let isAhead = last.map { $0.epoch == log.position.epoch && $0.number > log.position.number } ?? false
                if !isAhead { last = log.position }
                if await interruption.wait(for: .milliseconds(100)) { return }
            }
        }
    }
}

extension LoggedChange {
    fileprivate var json: JSONText {
        .object([
            ("number", .int(Int(clamping: number))), ("keys", .strings(keys)), ("isEverything", .boolean(isEverything)),
        ])
    }

    fileprivate var line: String {
        Output.oneLine(([String(number)] + (isEverything ? ["everything"] : keys)).joined(separator: " "))
    }
}
