import Foundation

/// Writes the story to standard output, in lines of at most 80 columns: text on the left, figures on the right.
struct Printout: Sendable {
    static let width = 78
    private static let indent = "    "

    private let isQuiet: Bool
    private let hasColor: Bool

    init(isQuiet: Bool) {
        self.isQuiet = isQuiet
        let environment = ProcessInfo.processInfo.environment
        hasColor =
            isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty
            && environment["TERM"] != "dumb"
    }

    func title(_ text: String) { write(styled(text, "1")) }
    func subtitle(_ text: String) { write(text) }

    func step(_ number: Int, _ text: String) {
        write("")
        write(styled("\(number < 10 ? " " : "")\(number)  \(text)", "1;36"))
    }

    /// Words only, broken where they are too long for a line.
    func say(_ text: String) {
        for line in Self.wrapped(text, to: Self.width - Self.indent.count) { write(Self.indent + line) }
    }

    /// Something to be copied as it is; never broken.
    func command(_ text: String) { write(Self.indent + "  " + styled(text, "1")) }

    func fact(_ text: String, _ figure: String) {
        let gap = Self.width - Self.indent.count - text.count - figure.count
        write(Self.indent + text + String(repeating: " ", count: max(1, gap)) + styled(figure, "1;32"))
    }

    func fact(_ text: String, _ duration: Duration) { fact(text, Figures.text(duration)) }
    func fact(_ text: String, _ count: Int) { fact(text, Figures.text(count)) }

    func verdict(_ text: String) {
        if !isQuiet { write("") }
        Self.put(styled(text, "1;32"))
    }

    private func write(_ line: String) {
        if !isQuiet { Self.put(line) }
    }

    /// A reader that has gone away ends nothing here: the checks go on, and the exit status tells.
    private static func put(_ line: String) {
        try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8))
    }

    private func styled(_ text: String, _ style: String) -> String {
        hasColor ? "\u{1B}[\(style)m\(text)\u{1B}[0m" : text
    }

    static func wrapped(_ text: String, to width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(whereSeparator: \.isWhitespace) {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = last + " " + word
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}
