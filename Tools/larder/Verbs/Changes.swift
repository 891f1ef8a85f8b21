import ArgumentParser
import LarderCommandLine
import LarderRecords

struct Changes: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Prints which objects each commit changed.",
        discussion: """
            One commit a line: its number, and the cache keys of the objects that it changed. The cache keeps the last \
            thousand. With --follow, what is committed later too, by whatever process, until it is interrupted or has \
            printed --count lines.
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
            var (last, told) = (since, 0)
            let epoch = try cache.position.epoch
            while true {
                let found = try cache.inspect.changes(after: last)
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
                            ("epoch", .string(String(epoch, radix: 16))), ("changes", .array(shown.map(\.json))),
                            ("hasMore", .boolean(shown.count < found.count)),
                        ]),
                        text: shown.map(\.line).joined(separator: "\n"))
                }
                last = try found.last?.number ?? last ?? cache.position.number
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
