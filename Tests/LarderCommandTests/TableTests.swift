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

    @Test("On a terminal columns are aligned, and a line is cut at its edge")
    func fitted() {
        #expect(Self.table.fitted(columns: 80, hasColours: false) == "failed  1   no such recipe\nok      22")
        #expect(Self.table.fitted(columns: 15, hasColours: false) == "failed  1   no…\nok      22")
        #expect(Self.table.fitted(columns: 5, hasColours: false) == "fail…\nok   ")
    }

    @Test("Colours are around a cell's text alone")
    func coloured() {
        let line = Self.table.fitted(columns: 80, hasColours: true).split(separator: "\n")[0]
        #expect(line == "\u{1B}[31mfailed\u{1B}[0m  1   no such recipe")
    }

    @Test("The entries of a list stay whole")
    func list() {
        let list = TableText(rows: [[TableCell("Movie:12345")]])
        #expect(list.fitted(columns: 4, hasColours: true) == "Movie:12345")
    }

    @Test(
        "A time is told as far as it is from now",
        arguments: [(0, "0 s ago"), (59, "59 s ago"), (61, "1 min ago"), (-7_300, "in 2 h"), (200_000, "2 d ago")])
    func times(seconds: Int, text: String) {
        let now = Date(timeIntervalSince1970: 1_000_000)
        #expect(RelativeTime.text(now - TimeInterval(seconds), now: now) == text)
    }

    @Test("A list has colours on a terminal, and none with NO_COLOR")
    func terminal() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(try await fixture.upload()))
            let coloured = try Terminal(["transfers", "--store", fixture.store])
            #expect(await coloured.finish() == 0)
            #expect(coloured.shown.hasPrefix("\u{1B}[31mfailed\u{1B}[0m"), "\(coloured.shown)")
            let plain = try Terminal(["transfers", "--store", fixture.store], environment: ["NO_COLOR": "1"])
            #expect(await plain.finish() == 0)
            #expect(plain.shown.hasPrefix("failed "), "\(plain.shown)")
        }
    }
}
