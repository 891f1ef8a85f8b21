package import Foundation

/// A cell of a table that people read.
package struct TableCell {
    /// What a cell says beside its text, as a colour where the terminal has colours.
    package enum Tone: String, Sendable {
        case good = "32"
        case warning = "33"
        case bad = "31"
        case faint = "2"
    }

    package let text: String
    package let tone: Tone?

    /// - Parameter text: Of one line; it may come from elsewhere.
    package init(_ text: String, _ tone: Tone? = nil) {
        self.text = Output.oneLine(text)
        self.tone = tone
    }
}

/// Rows of cells as lines: in a pipe with one space between cells; on a terminal aligned, and cut at its edge.
struct TableText {
    let rows: [[TableCell]]

    /// For a pipe.
    var plain: String { rows.map { Self.joined($0.map(\.text)) }.joined(separator: "\n") }

    private static func joined(_ texts: [String]) -> String {
        texts.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// For a terminal. A table of one column is a list, whose entries stay whole.
    func fitted(columns: Int, hasColours: Bool) -> String {
        var widths: [Int] = []
        for row in rows {
            for (index, cell) in row.enumerated() {
                if index == widths.count { widths.append(0) }
                widths[index] = max(widths[index], cell.text.count)
            }
        }
        let isList = widths.count <= 1
        return rows.map { row in
            var (line, room) = ("", isList ? Int.max : columns)
            for (index, cell) in row.enumerated() where widths[index] > 0 {
                guard room > 0 else { break }
                let isLast = !row[(index + 1)...].contains { !$0.text.isEmpty }
                var text = cell.text
                if text.count > room { text = String(text.prefix(room - 1)) + "…" }
                let padding = isLast ? 0 : min(room - text.count, widths[index] + 2 - text.count)
                line += Self.coloured(text, hasColours ? cell.tone : nil) + String(repeating: " ", count: padding)
                room -= text.count + padding
                if isLast { break }
            }
            return line
        }.joined(separator: "\n")
    }

    static func coloured(_ text: String, _ tone: TableCell.Tone?) -> String {
        guard let tone, !text.isEmpty else { return text }
        return "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[0m"
    }
}

/// A time as far as it is from now: "3 min ago", "in 2 h".
package enum RelativeTime {
    package static func text(_ time: Date, now: Date = Date()) -> String {
        let seconds = now.timeIntervalSince(time)
        let size = abs(seconds)
        let figure =
            switch size {
            case ..<60: "\(Int(size)) s"
            case ..<3_600: "\(Int(size / 60)) min"
            case ..<172_800: "\(Int(size / 3_600)) h"
            case ..<8_640_000_000: "\(Int(size / 86_400)) d"
            default: "long"
            }
        return seconds >= 0 ? "\(figure) ago" : "in \(figure)"
    }
}
