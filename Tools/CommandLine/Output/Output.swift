import Larder

/// Everything that a tool prints goes through here: data to standard output, and the rest to standard error. What goes
/// to a terminal goes through `TerminalText`; a pipe is given JSON as it is.
package struct Output: Sendable {
    /// The tool, with the version of its JSON shapes, which grows when one of them changes in a way that a reader must
    /// know.
    package struct Tool: Sendable {
        let name: String
        let version: Int

        package init(name: String, version: Int) {
            self.name = name
            self.version = version
        }
    }

    let tool: Tool
    /// The verb's name.
    let command: String
    package let isJSON: Bool

    package init(tool: Tool, command: String, isJSON: Bool) {
        self.tool = tool
        self.command = command
        self.isJSON = isJSON
    }

    /// Prints a result: the object of `--json`, or the text for people, which is made only if it is wanted.
    package func result(_ json: @autoclosure () -> JSONText, text: @autoclosure () -> String) throws {
        guard isJSON else { return try line(Array(text().utf8)) }
        try envelope(("result", json()))
    }

    /// Prints a result that people read as a table.
    package func result(_ json: @autoclosure () -> JSONText, table: @autoclosure () -> [[TableCell]]) throws {
        guard !isJSON else { return try envelope(("result", json())) }
        let table = TableText(rows: table())
        guard StandardFiles.outputIsTerminal else { return try line(Array(table.plain.utf8)) }
        guard !table.rows.isEmpty else { return }
        let text = table.fitted(columns: StandardFiles.outputSize?.columns, hasColours: StandardFiles.hasColours)
        try StandardFiles.writeUnchanged(Array("\(text)\n".utf8))
    }

    /// Prints a result whose text for people is JSON as well, such as `{"data": …}`.
    package func result(_ json: @autoclosure () -> JSONText, response: @autoclosure () -> JSONText) throws {
        guard isJSON else { return try line(response().bytes) }
        try envelope(("result", json()))
    }

    /// Says something beside the result; `--json` has it in the result.
    package func note(_ text: String) {
        guard !isJSON else { return }
        StandardFiles.writeError(Array("\(tool.name): \(Self.oneLine(URLText.hidingSecrets(in: text)))\n".utf8))
    }

    /// Says what casts doubt on a result, with `--json` as an object beside it.
    package func warn(_ failure: Failure) {
        guard isJSON else { return note(failure.message) }
        let members: [(name: String, value: JSONText)] = [
            ("code", .string(failure.code)), ("message", .string(URLText.hidingSecrets(in: failure.message))),
        ]
        StandardFiles.writeError(enveloped(("warning", .object(members))).bytes + [UInt8(ascii: "\n")])
    }

    /// Says what to do next, for people.
    func hint(_ text: String) {
        guard !isJSON else { return }
        StandardFiles.writeError(Array("\(tool.name): hint: \(text)\n".utf8), tone: .faint)
    }

    /// What to do next about something that could not be done; `--json` has it beside the code and the message.
    package func hint(for failure: Failure) -> String { failure.hint(tool: tool.name, verb: command) }

    /// Tells what could not be done of several things. `--json` has it in the result.
    ///
    /// - Returns: What to do next, each hint once.
    package func tell(_ failures: [(subject: String, failure: Failure)]) -> [String] {
        var hints: [String] = []
        for (subject, failure) in failures {
            note("\(subject): \(failure.message)")
            let hint = hint(for: failure)
            if !hints.contains(hint) { hints.append(hint) }
        }
        return hints
    }

    /// Names what is being worked on, for people who watch.
    package func heading(_ text: String) {
        if StandardFiles.errorIsTerminal { note(text) }
    }

    package func help(_ text: String) {
        // A help text that cannot be written is no failure.
        try? line(Array(text.utf8))
    }

    package func failed(_ failure: Failure) {
        // An argument that was not understood is repeated in the message, and may be a URL with a secret.
        let message = URLText.hidingSecrets(in: failure.message)
        let hint = failure.hint(tool: tool.name, verb: command)
        guard isJSON else {
            StandardFiles.writeError(Array("\(tool.name): \(Self.oneLine(message))\n".utf8), tone: .bad)
            return self.hint(hint)
        }
        let members: [(name: String, value: JSONText)] = [
            ("code", .string(failure.code)), ("message", .string(message)), ("hint", .string(hint)),
            ("exit", .int(Int(failure.exit.rawValue))),
        ]
        let json = enveloped(("error", .object(members + failure.details)))
        StandardFiles.writeError(json.bytes + [UInt8(ascii: "\n")])
    }

    private func envelope(_ member: (name: String, value: JSONText)) throws { try line(enveloped(member).bytes) }

    private func enveloped(_ member: (name: String, value: JSONText)) -> JSONText {
        .object([(tool.name, .int(tool.version)), ("command", .string(command)), member])
    }

    private func line(_ bytes: [UInt8]) throws {
        guard !bytes.isEmpty else { return }
        try StandardFiles.writeOutput(bytes + [UInt8(ascii: "\n")])
    }

    /// Text that may come from files and servers, as one line: breaks of lines and tabs are spaces, and what a terminal
    /// would obey is written out, also where the line goes into a pipe.
    package static func oneLine(_ text: String) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            let isBreak = ["\n", "\r", "\t", "\u{B}", "\u{C}", "\u{85}", "\u{2028}", "\u{2029}"].contains(scalar)
            if isBreak && line.last == " " { continue }
            line.append(isBreak ? " " : scalar)
        }
        return TerminalText.visible(String(line))
    }
}
