import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Transfers with a limit of bandwidth", .timeLimit(.minutes(10)))
struct BandwidthTests {
    @Test(
        "A sent body asks for a quarter of a second's bytes at a time, whole or in parts", arguments: [100, 10_000])
    func turns(count: Int) async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: count).upload
            try await fixture.drain { $0.bandwidth = 1 << 20 }
            try await upload.finished(within: .zero)
            let turns = fixture.storage.state.withLock { $0.turns }
            #expect(!turns.isEmpty && turns.allSatisfy { $0 == 262_144 })
        }
    }

    @Test("The limit holds for bytes that are sent and for bytes that are received", arguments: [true, false])
    func limit(isUpload: Bool) async throws {
        try await withTransferFixture { fixture in
            let transfer = try await fixture.transfer(isUpload: isUpload, bytes: 3_000)
            let begun = SuspendingClock.now
            try await fixture.drain { options in
                options.bandwidth = 4_000
                options.partSize = 4_096
            }
            let time = SuspendingClock.now - begun
            try await transfer.finished(within: .zero)
            // The transfer moves three times 1,000 bytes, a quarter of a second each, and the first do not wait.
            #expect(time >= .milliseconds(500))
        }
    }
}
