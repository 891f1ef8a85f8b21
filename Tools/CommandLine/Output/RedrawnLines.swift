import Foundation

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// Lines at the bottom of the terminal that are drawn again and again, such as bars of progress.
package struct RedrawnLines {
    /// How many are on the screen.
    private var count = 0

    /// Nil where standard output is no terminal, or one that cannot move its cursor.
    package init?() {
        let terminal = ProcessInfo.processInfo.environment["TERM"] ?? ""
        guard isatty(STDOUT_FILENO) == 1, !terminal.isEmpty, terminal != "dumb" else { return nil }
    }

    /// The terminal's size in columns and rows.
    package var size: (columns: Int, rows: Int) { StandardFiles.outputSize ?? (80, 24) }

    /// Puts lines in the place of the lines that were drawn before; none: takes these away. Lines for which the screen
    /// has no room are left out, as is what goes past its right edge.
    package mutating func draw(_ lines: [String]) throws {
        // The cursor cannot be moved to what has left the screen.
        let shown = lines.prefix(max(0, size.rows - 1))
        guard count > 0 || !shown.isEmpty else { return }
        // To the first line, all below it cleared; and no line is broken at the edge.
        var text = (count > 0 ? "\u{1B}[\(count)A" : "") + "\r\u{1B}[J\u{1B}[?7l"
        for line in shown { text += Output.oneLine(line) + "\n" }
        count = shown.count
        try StandardFiles.writeUnchanged(Array((text + "\u{1B}[?7h").utf8))
    }
}
