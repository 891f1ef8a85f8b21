import ArgumentParser
import LarderCommandLine

/// How much of a list is shown.
struct LimitOptions: ParsableArguments {
    @Option(help: ArgumentHelp("At most as many.", valueName: "n"))
    var limit: Int?

    func validate() throws {
        guard limit ?? 0 >= 0 else { throw ValidationError("--limit must not be negative.") }
    }

    private var most: Int { min(limit ?? .max, .max - 1) }
    /// How many to look for: one more than wanted tells whether there are more.
    var sought: Int { most + 1 }

    /// Shows of what was found as much as is wanted, and says whether there is more.
    func show<Item>(
        _ found: [Item], as name: String, _ output: Output, json: (Item) -> JSONText, cells: (Item) -> [TableCell]
    ) throws {
        let shown = found.prefix(most)
        let hasMore = shown.count < found.count
        if hasMore { output.note("there are more than \(most)") }
        try output.result(
            .object([(name, .array(shown.map(json))), ("hasMore", .boolean(hasMore))]), table: shown.map(cells))
    }
}
