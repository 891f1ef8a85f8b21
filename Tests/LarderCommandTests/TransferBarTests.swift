import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import LarderCommand

@Suite("Bars of transfers")
struct TransferBarTests {
    @Test(
        "Bytes are told in the largest unit, with a tenth where they are few",
        arguments: [
            (0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (1_049, "1.0 kB"), (1_050, "1.1 kB"), (99_949, "99.9 kB"),
            (99_950, "100 kB"), (999_499, "999 kB"), (999_500, "1.0 MB"), (2_500_000_000, "2.5 GB"),
            (1 << 50, "1126 TB"),
        ])
    func bytes(_ count: Int64, _ text: String) {
        #expect(ByteText(count).text == text)
    }

    private static let id = UUID()

    private func running(
        _ arrived: Int64, of size: Int64?, key: String = "a.mov", id: UUID = TransferBarTests.id
    ) async throws -> StoredTransfer {
        var found: StoredTransfer?
        try await TransferFixture.run { fixture in
            let queued = try await fixture.upload()
            found = try await fixture.withTable { try $0.find(queued) }
        }
        var transfer = try #require(found)
        (transfer.id, transfer.size, transfer.arrived, transfer.key) = (id, size, arrived, key)
        return transfer
    }

    @Test("A line has the name, the bar, the percentage and the bytes, in the terminal's width")
    func lines() async throws {
        let half = try await running(150_000, of: 300_000)
        let line = TransferBars.line(of: half, speed: 50_000, columns: 80)
        #expect(
            line == "upload media/a.mov  [######-------]  50 %  150 kB of 300 kB, 50.0 kB/s, 3 s left", "\(line)")
        #expect(line.count <= 80)
        let bare = TransferBars.line(of: half, speed: nil, columns: 40)
        #expect(
            bare == "upload media/a.mov  50 %  150 kB of 300 kB" || bare.contains("50 %  150 kB of 300 kB"), "\(bare)")
        let unknown = try await running(150_000, of: nil)
        #expect(TransferBars.line(of: unknown, speed: nil, columns: 80) == "upload media/a.mov  150 kB")
        let more = try await running(400_000, of: 300_000)
        #expect(TransferBars.line(of: more, speed: nil, columns: 80).contains("]  100 %  "))
        let long = try await running(0, of: 1, key: String(repeating: "k", count: 100) + "end")
        #expect(TransferBars.line(of: long, speed: nil, columns: 30).hasPrefix("upload me...  0 %"))
        #expect(TransferBars.line(of: long, speed: nil, columns: 60).hasPrefix("upload me...kkkkkend  "))
    }

    @Test("The speed is told after half a second, of the same attempt, and of the last quarter of a minute")
    func speeds() async throws {
        let now = SuspendingClock.now
        var bars = TransferBars()
        var transfer = try await running(0, of: 1_000_000)
        func line(_ arrived: Int64, _ seconds: Double) -> String {
            transfer.arrived = arrived
            return bars.lines(of: [transfer], columns: 200, at: now + .seconds(seconds)).first ?? ""
        }
        #expect(!line(0, 0).contains("/s"))
        #expect(!line(100_000, 0.4).contains("/s"))
        #expect(line(100_000, 1).contains("100 kB/s, 9 s left"))
        // Another attempt begins at nothing.
        #expect(!line(50_000, 2).contains("/s"))
        #expect(line(150_000, 4).contains("50.0 kB/s"))
        // What is older than the window counts no more.
        #expect(line(151_000, 30).contains("/s") == false)
        #expect(bars.lines(of: [], columns: 80, at: now + .seconds(31)).isEmpty)
        #expect(!line(200_000, 32).contains("/s"))
        // Nothing has come since, of which no speed can be told.
        #expect(!line(200_000, 40).contains("/s"))
    }
}
