import Foundation
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import Testing

@testable import LarderCommand

/// With it the system is told late of who takes the interrupt key.
private let slowSignals = PreloadedLibrary.compiled(from: "Tools/lib/slow_signals.c")

@Suite("transfers watch", .timeLimit(.minutes(10)))
struct TransferWatchTests {
    @Test("Each state is a line, by whatever process it comes about, and the end of all is the end")
    func watchesAll() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload())
            let watch = try LarderProcess.start(["transfers", "watch", "--store", fixture.store])
            try await watch.waitForLines(2)
            let attempt = try await fixture.begin(first, arrived: 100_000)
            try await watch.waitForLines(3)
            #expect(try await fixture.larder("transfers", "cancel", second.text, "--write").status == 0)
            try await watch.waitForLines(4)
            try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            let outcome = try await watch.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors == "")
            let source = fixture.source.path
            // It is begun before the first of it is noted as arrived: either may be seen.
            let running = "running \(first.text) upload"
            let said = outcome.output.replacing("\(running) 0/", with: "\(running) 100000/")
            #expect(
                said.split(separator: "\n").map(String.init) == [
                    "pending \(first.text) upload 0/300000 0 media/v/1 a.mov \(source)",
                    "pending \(second.text) upload 0/300000 0 media/v/1 a.mov \(source)",
                    "running \(first.text) upload 100000/300000 1 media/v/1 a.mov \(source)",
                    "cancelled \(second.text) upload 0/300000 0 media/v/1 a.mov \(source)",
                    "done \(first.text) upload 300000/300000 1 media/v/1 a.mov \(source)",
                ])
        }
    }

    @Test("A transfer is watched by its id until it ends, and no other is reported")
    func watchesOne() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload())
            let watch = try LarderProcess.start(["transfers", "watch", second.text, "--json", "--store", fixture.store])
            try await watch.waitForLines(1)
            try await fixture.begin(first)
            try await fixture.fail(fixture.begin(second))
            let outcome = try await watch.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n")
            #expect(
                lines.first?.hasPrefix(
                    #"{"larder":1,"command":"transfers watch","result":{"id":"\#(second.text)","sequence":2,"#) == true)
            #expect(lines.first?.contains(#""state":"pending""#) == true)
            #expect(lines.last?.contains(#""state":"failed""#) == true)
            #expect(!outcome.output.contains(first.text))
            let again = try await fixture.larder("transfers", "watch", second.text)
            #expect(again.output.hasPrefix("failed \(second.text) "))
        }
    }

    @Test("Where nothing is under way it ends at once, and an interrupt ends it in order")
    func ends() async throws {
        try await TransferFixture.run { fixture in
            let nothing = try await fixture.larder("transfers", "watch")
            #expect(nothing.status == 0)
            #expect(nothing.output == "")
            _ = try await fixture.upload()
            #expect(try await fixture.larder("transfers", "watch", "--count", "1").status == 0)
            let watch = try LarderProcess.start(["transfers", "watch", "--store", fixture.store])
            try await watch.waitForLines(1)
            watch.interrupt()
            let outcome = try await watch.finish()
            #expect(outcome.status == 0)
            #expect(outcome.errors == "")
        }
    }

    @Test("With --count so many lines are printed and no more, however many transfers there are to tell of at once")
    func counted() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload())
            let watch = try LarderProcess.start(["transfers", "watch", "--count", "1", "--store", fixture.store])
            try await watch.waitForLines(1)
            // A watch that goes on all the same ends with them.
            for id in [first, second] {
                #expect(try await fixture.larder("transfers", "cancel", id.text, "--write").status == 0)
            }
            let outcome = try await watch.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.count == 1 && lines.first?.hasPrefix("pending \(first.text) ") == true, "\(lines)")
        }
    }

    @Test(
        "An interrupt is taken as soon as there is a line, however late the system is told of who takes it",
        .enabled(if: slowSignals != nil, "needs Linux and clang"))
    func earlyInterrupt() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.upload()
            let watch = try LarderProcess.start(
                ["transfers", "watch", "--store", fixture.store],
                environment: ["LD_PRELOAD": try #require(slowSignals).path])
            try await watch.waitForLines(1)
            watch.interrupt()
            #expect(try await watch.finish().status == 0)
        }
    }

    @Test("On a terminal what is under way has a bar, which goes when it ends")
    func bars() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let attempt = try await fixture.begin(id, arrived: 150_000)
            let terminal = try Terminal(["transfers", "watch", "--store", fixture.store])
            try await terminal.wait(for: "[####")
            try await fixture.withTable { table in
                try await table.note(attempt, [.parts([.init(number: 2, size: 75_000, etag: "\"2\"", crc32c: 2)])])
            }
            try await terminal.wait(for: "75 %")
            try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            try await terminal.wait(for: "done \(id.text)")
            #expect(await terminal.finish() == 0)
            let shown = terminal.shown
            #expect(shown.contains("upload media/v/1 a.mov  ["), "\(shown)")
            #expect(shown.contains("50 %  150 kB of 300 kB"), "\(shown)")
            // The bar is taken away before the last line is written.
            let last = try #require(shown.range(of: "\u{1B}[1A\r\u{1B}[J", options: .backwards))
            #expect(!shown[last.upperBound...].contains("[" + "#"))
        }
    }

    @Test("Bars for which the terminal has no room are left out")
    func fewRows() async throws {
        try await TransferFixture.run { fixture in
            var attempts: [TransferAttempt] = []
            for _ in 0..<4 { attempts.append(try await fixture.begin(fixture.upload(), arrived: 150_000)) }
            let terminal = try Terminal(["transfers", "watch", "--store", fixture.store], size: (200, 3))
            // The second drawing moves up by as many lines as the first has drawn.
            try await terminal.wait(for: "A\r\u{1B}[J")
            for attempt in attempts {
                try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            }
            #expect(await terminal.finish() == 0)
            let drawings = terminal.shown.components(separatedBy: "\u{1B}[?7l").dropFirst().map { drawing in
                drawing.components(separatedBy: "\u{1B}[?7h")[0].count { $0.isNewline }
            }
            #expect(drawings.first == 2 && drawings.max() == 2, "\(drawings)")
        }
    }

    @Test("A terminal that cannot move its cursor is given lines and no bars", arguments: ["dumb", ""])
    func noBars(terminal name: String) async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let attempt = try await fixture.begin(id, arrived: 150_000)
            let terminal = try Terminal(["transfers", "watch", "--store", fixture.store], environment: ["TERM": name])
            try await terminal.wait(for: "running \(id.text)")
            // It would draw between the two lines.
            try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
            #expect(await terminal.finish() == 0)
            #expect(terminal.shown.contains("done \(id.text)"))
            #expect(!terminal.shown.contains("\u{1B}"), "\(terminal.shown)")
        }
    }

    @Test("A transfer that was begun anew between two looks is told again")
    func begunAnew() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let attempt = try await fixture.begin(id)
            try await fixture.withTable { table in
                var news = TransferNews(of: nil)
                #expect(try news.look(table).news.map(\.attempts) == [1])
                #expect(try news.look(table).news.isEmpty)
                try await table.release(attempt)
                _ = try await table.begin(id, owner: "a test", now: Date())
                let found = try news.look(table)
                #expect(found.news.map(\.state) == [.running] && found.news.map(\.attempts) == [2])
            }
        }
    }

    @Test("A transfer that is forgotten while it is watched has ended; one that never was is unknown")
    func forgotten() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.withTable { table in
                var news = TransferNews(of: id)
                let first = try news.look(table)
                let partition = try #require(first.news.first).partition
                _ = try await table.cancel(id, now: Date())
                try await table.prune(keeping: 0, in: partition)
                let found = try news.look(table)
                #expect(found.isOver && found.news.isEmpty && found.running.isEmpty)
                #expect(throws: Failure.self) {
                    var other = TransferNews(of: id)
                    _ = try other.look(table)
                }
            }
        }
    }

    @Test("A watch tells that a transfer is paused, and goes on")
    func held() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.withTable { table in
                var news = TransferNews(of: nil)
                _ = try news.look(table)
                try await table.pause(id)
                let found = try news.look(table)
                #expect(found.news.map(\.state) == [.paused] && !found.isOver)
            }
        }
    }

    @Test("A watch tells of transfers in the order in which they were queued, whichever of them have ended")
    func ordered() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload())
            try await fixture.withTable { table in
                var news = TransferNews(of: nil)
                _ = try news.look(table)
                try await table.pause(first)
                _ = try await table.cancel(second, now: Date())
                let found = try news.look(table)
                #expect(found.news.map(\.id) == [first, second])
            }
        }
    }
}
