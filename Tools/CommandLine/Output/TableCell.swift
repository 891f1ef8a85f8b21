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
    /// In columns of a terminal.
    let width: Int

    /// - Parameter text: Of one line; it may come from elsewhere.
    package init(_ text: String, _ tone: Tone? = nil) {
        self.text = Output.oneLine(text)
        width = TerminalText.width(of: self.text)
        self.tone = tone
    }
}

/// Rows of cells as lines: in a pipe with one space between cells; on a terminal aligned, and within its edge.
struct TableText {
    let rows: [[TableCell]]

    /// For a pipe.
    var plain: String { rows.map { Self.joined($0.map(\.text)) }.joined(separator: "\n") }

    private static func joined(_ texts: [String]) -> String {
        texts.filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// For a terminal. What a line has no room for goes on below it, indented, and nothing is cut off. A table of one
    /// column is a list, whose entries stay whole.
    ///
    /// - Parameter columns: Of the terminal; nil where it does not say.
    func fitted(columns: Int?, hasColours: Bool) -> String {
        var widths: [Int] = []
        for row in rows {
            for (index, cell) in row.enumerated() {
                if index == widths.count { widths.append(0) }
                widths[index] = max(widths[index], cell.width)
            }
        }
        let room = widths.count <= 1 ? Int.max : columns ?? .max
        return rows.map { row in
            let shown = row.indices.filter { row[$0].width > 0 }
            // Cells of columns that are empty everywhere take no room, and the first cell has its place in any case.
            var (line, used, next) = ("", 0, row.startIndex)
            while let last = shown.last, next <= last {
                let cell = row[next]
                guard next == row.startIndex || used + cell.width <= room else { break }
                line += Self.coloured(cell.text, hasColours ? cell.tone : nil)
                used += cell.width
                if next < last, widths[next] > 0 {
                    line += String(repeating: " ", count: widths[next] + 2 - cell.width)
                    used += widths[next] + 2 - cell.width
                }
                next += 1
            }
            while line.hasSuffix(" ") { line.removeLast() }
            let below = Self.wrapped(shown.filter { $0 >= next }.map { row[$0] }, room, hasColours)
            return ([line] + below).joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// Cells on indented lines of at most so many columns, broken between words.
    private static func wrapped(_ cells: [TableCell], _ columns: Int, _ hasColours: Bool) -> [String] {
        let indent = "    "
        var (lines, used) = ([String](), Int.max)
        func put(_ text: String, _ width: Int, _ space: Int, _ tone: TableCell.Tone?) {
            let text = coloured(text, hasColours ? tone : nil)
            if used == .max || used + space + width > columns {
                lines.append(indent + text)
                used = indent.count + width
            } else {
                lines[lines.count - 1] += String(repeating: " ", count: space) + text
                used += space + width
            }
        }
        for cell in cells {
            guard indent.count + cell.width > columns else { put(cell.text, cell.width, 2, cell.tone); continue }
            for (index, word) in cell.text.split(separator: " ").enumerated() {
                put(String(word), TerminalText.width(of: String(word)), index == 0 ? 2 : 1, cell.tone)
            }
        }
        return lines
    }

    static func coloured(_ text: String, _ tone: TableCell.Tone?) -> String {
        guard let tone, !text.isEmpty else { return text }
        return "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[0m"
    }
}

extension Date {
    /// ISO 8601, to the second, in UTC.
    package var text: String { formatted(.iso8601) }

    /// The same, and how long ago that was or how long it is until then.
    package var shown: String { "\(text) (\(RelativeTime.text(self)))" }
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
