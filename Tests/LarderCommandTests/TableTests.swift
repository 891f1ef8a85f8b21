import Foundation
import LarderTestSupport
import Testing

@testable import LarderCommandLine

@Suite("Tables and times that people read")
struct TableTests {
    private static let table = TableText(rows: [
        [TableCell("failed", .bad), TableCell("1"), TableCell("no such\nrecipe")],
        [TableCell("ok"), TableCell("22"), TableCell("")],
    ])

    @Test("In a pipe cells stand apart by one space, and a row is one line")
    func plain() { #expect(Self.table.plain == "failed 1 no such recipe\nok 22") }

    @Test("On a terminal columns are aligned; what a line has no room for is below it, whole")
    func fitted() {
        for columns in [80, 26, nil] {
            #expect(Self.table.fitted(columns: columns, hasColours: false) == "failed  1   no such recipe\nok      22")
        }
        #expect(
            Self.table.fitted(columns: 20, hasColours: false) == "failed  1\n    no such recipe\nok      22")
        #expect(
            Self.table.fitted(columns: 12, hasColours: false) == "failed  1\n    no such\n    recipe\nok      22")
        #expect(
            Self.table.fitted(columns: 5, hasColours: true)
                == "\u{1B}[31mfailed\u{1B}[0m\n    1\n    no\n    such\n    recipe\nok\n    22")
    }

    @Test("Characters take the columns that a terminal gives them")
    func wide() {
        let table = TableText(rows: [
            [TableCell("スープ"), TableCell("1")], [TableCell("e\u{301}te\u{301}"), TableCell("2")],
            [TableCell("❤️👩‍👧"), TableCell("3")], [TableCell("ｶﾞ한"), TableCell("4")],
        ])
        #expect(
            table.fitted(columns: 80, hasColours: false)
                == "スープ  1\ne\u{301}te\u{301}     2\n❤️👩‍👧    3\nｶﾞ한    4")
    }

    @Test(
        "A pictograph and a character of East Asian width take two columns, wherever they stand in Unicode",
        arguments: ["𠮷", "🚀", "🥕", "🫖", "Ａ", "￥", "✅", "⌚", "🟢", "🇮🇹"])
    func twoColumns(character: String) {
        let table = TableText(rows: [[TableCell(character), TableCell("1")], [TableCell("ab"), TableCell("2")]])
        #expect(table.fitted(columns: 80, hasColours: false) == "\(character)  1\nab  2")
    }

    @Test("Colours are around a cell's text alone")
    func coloured() {
        let line = Self.table.fitted(columns: 80, hasColours: true).split(separator: "\n")[0]
        #expect(line == "\u{1B}[31mfailed\u{1B}[0m  1   no such recipe")
        let empty = TableText(rows: [[TableCell("", .bad), TableCell("1")], [TableCell("bad", .bad), TableCell("2")]])
        #expect(empty.fitted(columns: 80, hasColours: true).hasPrefix("     1\n\u{1B}[31mbad"))
    }

    @Test("The entries of a list stay whole")
    func list() {
        let list = TableText(rows: [[TableCell("Movie:12345")]])
        #expect(list.fitted(columns: 4, hasColours: true) == "Movie:12345")
    }

    @Test(
        "A time is told as far as it is from now",
        arguments: [
            (0, "0 s ago"), (59, "59 s ago"), (61, "1 min ago"), (-7_300, "in 2 h"), (172_799, "47 h ago"),
            (172_800, "2 d ago"),
        ])
    func times(seconds: Int, text: String) {
        let now = Date(timeIntervalSince1970: 1_000_000)
        #expect(RelativeTime.text(now - TimeInterval(seconds), now: now) == text)
    }

    @Test("A list has colours on a terminal, and none with NO_COLOR, or where the terminal is a dumb one")
    func terminal() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(try await fixture.upload()))
            let coloured = try Terminal(["transfers", "--store", fixture.store])
            #expect(await coloured.finish() == 0)
            #expect(coloured.shown.hasPrefix("\u{1B}[31mfailed\u{1B}[0m"), "\(coloured.shown)")
            for variable in [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "")] {
                let plain = try Terminal(
                    ["transfers", "--store", fixture.store], environment: [variable.0: variable.1])
                #expect(await plain.finish() == 0)
                #expect(plain.shown.hasPrefix("failed "), "\(variable): \(plain.shown)")
            }
        }
    }

    @Test("The width that the terminal says goes before COLUMNS, where the terminal says its height as well")
    func widthOfTerminal() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(try await fixture.upload()))
            for (rows, isWhole) in [(24, false), (0, true)] {
                let terminal = try Terminal(
                    ["transfers", "--store", fixture.store], size: (60, rows),
                    environment: ["COLUMNS": "1000", "NO_COLOR": "1"])
                #expect(await terminal.finish() == 0)
                let lines = terminal.shown.split(whereSeparator: \.isNewline)
                #expect((lines.count == 1) == isWhole && lines[0].hasPrefix("failed "), "\(rows): \(terminal.shown)")
            }
        }
    }

    @Test("Where the terminal does not say its width, COLUMNS does, and without it lines are as long as they are")
    func widthByVariable() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(try await fixture.upload()))
            for (columns, isWhole) in [("60", false), ("0", true), ("", true)] {
                let variables = ["COLUMNS": columns, "NO_COLOR": "1"]
                let terminal = try Terminal(["transfers", "--store", fixture.store], environment: variables)
                #expect(await terminal.finish() == 0)
                let lines = terminal.shown.split(whereSeparator: \.isNewline)
                #expect((lines.count == 1) == isWhole && lines[0].hasPrefix("failed "), "\(columns): \(terminal.shown)")
            }
        }
    }
}
