import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite("Transfers whose stored numbers are hostile", .timeLimit(.minutes(10)))
struct HostilePartTests {
    @Test(
        "A transfer whose parts are no plan's fails, with the reason, and the next start and the others go on",
        arguments: [
            "UPDATE transfer SET part_size = 0", "UPDATE transfer SET part_size = 9223372036854775807",
            "UPDATE transfer SET attempts = 9223372036854775807", "UPDATE transfer SET metadata = x'7b'",
            "UPDATE transfer_part SET size = 9223372036854775807",
            "UPDATE transfer_part SET number = -9223372036854775808 WHERE number = 1",
            "UPDATE transfer_part SET number = 9223372036854775807 WHERE number = 1",
        ])
    func hostile(damage: String) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10_000)
            let stuck = try await fixture.stuckUploads(1, of: file)[0]
            // It stays with some of its parts.
            let running = Task { try await fixture.runner().run() }
            try await eventually { try stuck.status().arrived >= 3 * 1024 }
            running.cancel()
            _ = await running.result
            let other = try OtherProgram(fixture.folder.appending(path: "store"))
            try other.run("PRAGMA ignore_check_constraints = ON")
            try other.run(damage)
            fixture.storage.onCall { _ in }
            let (small, _) = try fixture.file("small", bytes: 100)
            let next = try await fixture.app.transfers.upload(small, to: TransferFixture.location)
            try await fixture.drain()
            let failed = try stuck.status()
            #expect(failed.state == .failed && failed.failure?.code.rawValue == "operations.damagedRow", "\(failed)")
            #expect(try next.status().state == .done)
            await #expect(throws: LarderError.self) { try await stuck.retry() }
        }
    }

    @Test("The status of a transfer whose row was damaged says that, and not that there is no such transfer")
    func damagedStatus() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let other = try OtherProgram(fixture.folder.appending(path: "store"))
            try other.run("PRAGMA ignore_check_constraints = ON")
            try other.run("UPDATE transfer SET part_size = 0")
            await expectCode(.init(rawValue: "operations.damagedRow")) { _ = try upload.status() }
            // The fixture looks for damage at the end.
            try other.run("UPDATE transfer SET part_size = NULL")
        }
    }

    @Test("Progress never exceeds the size, also while lost parts are received again")
    func progress() throws {
        let book = TransferBook()
        let transfer = StoredTransfer(
            sequence: 1, id: UUID(), partition: "main", kind: .download, state: .running, priority: 0, bucket: "b",
            key: "k", path: "/f", replaces: false, attempts: 1, created: Date(), size: 1_000, arrived: 1_000)
        let meter = book.meter(of: transfer.id, arrived: 1_000)
        meter.move(400, of: 1)
        #expect(book.progress(of: TransferStatus(transfer)).completed == 1_000)
        // A storage's word for a size is no reason to end the process.
        meter.end(1, arrived: .max)
        meter.end(2, arrived: .max)
        #expect(book.progress(of: TransferStatus(transfer)).completed == 1_000)
    }
}
