import Foundation

/// What a run found, as a table and as JSON.
struct Report {
    /// The version of the JSON's shape; goes up when something is renamed or removed.
    static let version = 1

    var input: String
    var rounds: Int
    var rows: [BenchRow] = []

    // MARK: JSON

    private struct Row: Encodable {
        var name, what, unit: String
        var value: Double
        var floorName: String?
        var floor, ratio, fastest, fastestFloor, reachRatio, reachExcess, reachMost: Double?
        var isReached: Bool?
        /// Of the waits of one row: how many there were, and what 50 and 99 of 100 and the longest took.
        var waits: Int?
        var p50, p99, maximum: Double?
        var note: String?

        init(_ row: BenchRow) {
            (name, what, unit) = (row.name, row.what, row.unit.rawValue)
            (value, floorName, floor, ratio) = (row.value, row.floorName, row.floor, row.ratio)
            (fastest, fastestFloor) = (row.fastest, row.fastestFloor)
            (isReached, note) = (row.isReached, row.note)
            (waits, p50, p99) = (row.waits?.count, row.waits?.half, row.waits?.ninetyNine)
            maximum = row.waits?.longest
            switch row.reach {
            case .ratio(let limit): reachRatio = limit
            case .excess(let limit): reachExcess = limit
            case .most(let limit): reachMost = limit
            case nil: break
            }
        }
    }

    private struct Shape: Encodable {
        var version: Int
        var input: String
        var rounds, processors: Int
        var rows: [Row]
    }

    func json() throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let shape = Shape(
            version: Self.version, input: input, rounds: rounds,
            processors: ProcessInfo.processInfo.activeProcessorCount, rows: rows.map(Row.init))
        return String(decoding: try encoder.encode(shape), as: UTF8.self)
    }

    // MARK: Table

    var table: String {
        let header = ["row", "ours", "floor", "ratio", "reach", "", "fastest", "floor is", "what is timed"]
        let lines =
            [header]
            + rows.map { row in
                [
                    row.name, Self.text(row.value, row.unit), row.floor.map { Self.text($0, row.unit) } ?? "-",
                    row.ratio.map { String(format: "%.2f x", $0) } ?? "-", Self.text(row.reach, row.unit),
                    row.isReached.map { $0 ? "ok" : "MISS" } ?? "",
                    row.fastestRatio.map { String(format: "%.2f x", $0) } ?? "-", row.floorName ?? "-",
                    row.what + Self.text(row.waits) + (row.note.map { " (\($0))" } ?? ""),
                ]
            }
        return Self.table(lines)
    }

    private static func text(_ waits: Measurement.Waits?) -> String {
        guard let waits else { return "" }
        return "; 99 of 100 of \(waits.count), half \(text(waits.half, .seconds)), longest "
            + text(waits.longest, .seconds)
    }

    static func table(_ lines: [[String]]) -> String {
        guard let header = lines.first else { return "" }
        let widths = header.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
        return lines.map { line in
            zip(line, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
        }.joined(separator: "\n")
    }

    static func text(_ value: Double, _ unit: BenchRow.Unit) -> String {
        switch unit {
        case .seconds where value < 1e-6: String(format: "%.0f ns", value * 1e9)
        case .seconds where value < 1e-3: String(format: "%.2f µs", value * 1e6)
        case .seconds where value < 1: String(format: "%.2f ms", value * 1e3)
        case .seconds: String(format: "%.2f s", value)
        case .bytes, .allocations: String(format: "%.0f", value)
        }
    }

    private static func text(_ reach: BenchRow.Reach?, _ unit: BenchRow.Unit) -> String {
        switch reach {
        case .ratio(let limit): String(format: "<= %.2f x", limit)
        case .excess(let limit): "+ " + text(limit, unit)
        case .most(let limit): "<= " + text(limit, unit)
        case nil: "report"
        }
    }
}
