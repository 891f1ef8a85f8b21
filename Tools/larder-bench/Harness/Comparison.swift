import Foundation

/// Two runs side by side: an earlier one, from the JSON that it printed, and this one.
struct Comparison {
    /// As much of a report as is compared. Other versions may have more.
    private struct Earlier: Decodable {
        struct Row: Decodable {
            var name, what, unit: String
            var value: Double
            var ratio, p50, p99, maximum: Double?
        }

        var version: Int
        var input: String
        var rows: [Row]
    }

    private let earlier: Earlier
    private let path: String

    /// - Throws: `BenchFailure` where the file is none that `--json` printed.
    init(path: String) throws {
        self.path = path
        do {
            earlier = try JSONDecoder().decode(Earlier.self, from: Data(contentsOf: URL(filePath: path)))
        } catch {
            throw BenchFailure("\(path) cannot be compared with: give what --json printed. (\(error))")
        }
        guard earlier.version == Report.version else {
            throw BenchFailure("\(path) has version \(earlier.version) of the report, this program \(Report.version)")
        }
    }

    /// The rows of this run, each beside its earlier figures. A row that the earlier run does not have has none.
    func table(of report: Report) -> String {
        var rest = earlier.rows
        let lines = report.rows.map { row -> [String] in
            // Some rows have one name; then what they time tells them apart.
            let index =
                rest.firstIndex { $0.name == row.name && $0.what == row.what }
                ?? rest.firstIndex { $0.name == row.name }
            let before = index.map { rest.remove(at: $0) }
            func pair(_ before: Double?, _ now: Double?) -> [String] {
                [before, now].map { $0.map { Report.text($0, row.unit) } ?? "-" }
            }
            let change = before.map { $0.value > 0 ? row.value / $0.value : .infinity }
            let ratios = [before?.ratio, row.ratio].map { $0.map { String(format: "%.2f x", $0) } ?? "-" }
            return [row.name] + pair(before?.value, row.value) + [change.map { String(format: "%.2f", $0) } ?? "-"]
                + ratios + pair(before?.maximum, row.waits?.longest)
        }
        let header = ["row", "earlier", "now", "now/earlier", "earlier ratio", "ratio", "earlier longest", "longest"]
        let same = earlier.input == report.input ? "" : " (of another input: \(earlier.input))"
        return "beside \(path)\(same)\n\n\(Report.table([header] + lines))"
    }
}
