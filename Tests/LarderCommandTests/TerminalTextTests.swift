import Foundation
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Output on a terminal", .timeLimit(.minutes(10)))
struct TerminalTextTests {
    /// What a terminal would obey, or what would turn the text around it, of each kind one or more.
    private static let harmful: [Unicode.Scalar] = [
        "\u{0}", "\u{7}", "\u{8}", "\u{D}", "\u{1B}", "\u{1F}", "\u{7F}", "\u{80}", "\u{85}", "\u{90}", "\u{9B}",
        "\u{9D}",
        "\u{9F}", "\u{61C}", "\u{200E}", "\u{200F}", "\u{202A}", "\u{202B}", "\u{202C}", "\u{202D}", "\u{202E}",
        "\u{2066}",
        "\u{2067}", "\u{2068}", "\u{2069}",
    ]
    /// A title that clears the screen, by either of two sequences, and turns the end of the line around.
    private static let title = "Soup\u{9B}2J\u{7F}\u{202E}puos\u{2066}"

    private func isHarmless(_ text: String) -> Bool { !text.unicodeScalars.contains { Self.harmful.contains($0) } }

    @Test("Every character that a terminal obeys, or that turns text around, is written out; nothing else is changed")
    func characters() {
        for scalar in Self.harmful {
            let text = "a\(scalar)ü"
            let digits = String(scalar.value, radix: 16)
            let escape = "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            #expect(TerminalText.visible(text) == "a\(escape)ü")
            #expect(TerminalText.visible(Array(text.utf8)) == Array("a\(escape)ü".utf8))
        }
        let plain = "Grüße\t日本語 🍲 \u{A0}\u{2028} \u{300}\n"
        #expect(TerminalText.visible(plain) == plain)
        #expect(TerminalText.visible(Array(plain.utf8)) == Array(plain.utf8))
    }

    @Test("Breaks of lines and tabs become one space, and what is no break stays as it is")
    func oneLine() {
        for (text, line) in [
            ("a\nb", "a b"), ("a\r\nb", "a b"), ("a\n\n\tb", "a b"), ("a \nb", "a b"), ("a  b", "a  b"),
            ("a\u{2028}b\u{85}c", "a b c"), ("", ""),
        ] {
            #expect(Output.oneLine(text) == line)
        }
    }

    @Test("Bytes that are no UTF-8 are written out too, wherever they stand")
    func bytes() {
        #expect(TerminalText.visible([0x61, 0x9B, 0x62]) == Array(#"a\x9bb"#.utf8))
        #expect(TerminalText.visible([0xC2]) == Array(#"\xc2"#.utf8))
        #expect(TerminalText.visible([0xE2, 0x80, 0x41]) == Array(#"\xe2\x80A"#.utf8))
        #expect(TerminalText.visible([0xC2, 0x9B, 0xFF]) == Array(#"\u009b\xff"#.utf8))
        #expect(TerminalText.visible([]) == [])
    }

    /// Runs `body` with a store in which a recipe has that title.
    private func withHarmfulStore(_ body: (CommandFixture) async throws -> Void) async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: Self.title)
            try await body(fixture)
        }
    }

    private func shown(by arguments: [String]) async throws -> String {
        let terminal = try Terminal(arguments, showsErrors: true, environment: ["NO_COLOR": "1"])
        _ = await terminal.finish()
        return terminal.shown.replacing("\r\n", with: "\n")
    }

    @Test(
        "Queries, watches and objects come to a terminal with such characters written out",
        arguments: [
            ["query"], ["query", "--json"], ["watch", "--count", "1"], ["get", "Recipe:1"],
        ])
    func data(verb: [String]) async throws {
        try await withHarmfulStore { fixture in
            var arguments = verb + ["--store", fixture.store]
            if verb[0] != "get" { arguments += try fixture.operation("One", variables: #"{"id":"1"}"#) }
            let shown = try await shown(by: arguments)
            #expect(shown.contains(#"Soup\u009b2J\u007f\u202epuos\u2066"#), "\(shown)")
            #expect(isHarmless(shown), "\(shown)")
        }
    }

    @Test(
        "Errors, too, whatever of the arguments they repeat",
        arguments: [
            ["get", "Recipe:\u{9B}2J\u{202E}9"], ["info", "\u{1B}]0;hush\u{7}\u{9B}"],
            ["query", "--operation", "/none\u{9B}2J", "--schema", "/none\u{1B}[2J"],
        ])
    func errors(arguments: [String]) async throws {
        try await withHarmfulStore { fixture in
            let shown = try await shown(by: arguments + ["--store", fixture.store])
            #expect(shown.contains(#"\u009b"#) || shown.contains(#"\u001b"#), "\(shown)")
            #expect(isHarmless(shown), "\(shown)")
        }
    }

    @Test("Messages about a store whose folder has such a name write it out")
    func folder() async throws {
        try await withHarmfulStore { fixture in
            let named = fixture.folder.appending(path: "store\u{9B}2J")
            try FileManager.default.moveItem(atPath: fixture.store, toPath: named.path)
            for verb in [["info", "--types"], ["info", "--json"], ["check"]] {
                let shown = try await shown(by: verb + ["--store", named.path])
                #expect(shown.contains(#"store\u009b2J"#), "\(shown)")
                #expect(isHarmless(shown), "\(shown)")
            }
        }
    }

    @Test("Bars of progress move the cursor, and the names in them do not")
    func progress() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload(
                to: .init(bucket: "media", key: "\u{9B}2J\u{202E}v.mov", region: "eu-west-1"))
            let attempt = try await fixture.begin(id, arrived: 150_000)
            let terminal = try Terminal(["transfers", "watch", "--store", fixture.store])
            try await terminal.wait(for: "[####")
            try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            try await terminal.wait(for: "done \(id.text)")
            #expect(await terminal.finish() == 0)
            #expect(terminal.shown.contains("\u{1B}[1A\r\u{1B}[J"))
            #expect(terminal.shown.contains(#"media/\u009b2J\u202ev.mov  ["#), "\(terminal.shown)")
            #expect(
                !terminal.shown.unicodeScalars.contains("\u{9B}") && !terminal.shown.unicodeScalars.contains("\u{202E}")
            )
        }
    }

    @Test("A pipe is given the data as it is")
    func pipe() async throws {
        try await withHarmfulStore { fixture in
            let options = try fixture.operation("One", variables: #"{"id":"1"}"#)
            for verb in [["query"], ["query", "--json"], ["watch", "--count", "1"]] {
                let outcome = try await fixture.larder(verb + options)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.output.contains(Self.title), "\(outcome.output)")
            }
        }
    }

    @Test("On a terminal a verb names the store that it works on, and in a pipe it does not")
    func heading() async throws {
        try await CommandFixture.withStore { fixture in
            let shown = try await shown(by: ["ls", "--type", "Author", "--store", fixture.store])
            #expect(shown == "larder: store \(fixture.store)\nAuthor:7\n")
            #expect(try await fixture.larder("ls").errors == "")
        }
    }

    @Test("Control characters are written out in a pipe as well, in lines for people and in errors")
    func linesInPipe() async throws {
        try await withHarmfulStore { fixture in
            let shown = try await fixture.larder("get", "Recipe:1")
            #expect(shown.output.contains(#"Soup\u009b2J\u007f\u202epuos\u2066"#), "\(shown.output)")
            #expect(isHarmless(shown.output), "\(shown.output)")
            let missed = try await fixture.larder("get", "Recipe:\u{9B}9")
            #expect(missed.errors.contains(#"Recipe:\u009b9"#), "\(missed.errors)")
            #expect(isHarmless(missed.errors), "\(missed.errors)")
        }
    }
}
