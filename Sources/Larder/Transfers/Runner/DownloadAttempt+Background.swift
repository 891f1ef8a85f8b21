import Foundation
import LarderOperations

extension DownloadAttempt {
    /// Has the whole object received outside of this program, or waits for what an attempt before this one has handed
    /// over; then verifies the file, and puts it in its place.
    func handOver(_ background: any BackgroundTransport) async throws -> StoredObject {
        let core = context.core
        let path = PartialFile.path(of: transfer.id, in: core.folder)
        // An attempt that was killed before it handed the download over has noted nothing of the object.
        let isKnown = try await background.known().contains(transfer.id)
        let (etag, size, crc32c): (String, Int64, UInt32?)
        if isKnown, let noted = transfer.etag, let length = transfer.size {
            (etag, size, crc32c) = (noted, length, transfer.crc32c)
        } else {
            if isKnown { try await background.end(transfer.id) }
            let (object, length) = try await wantedObject()
            try requireRoom(for: length, PartialFile(of: transfer.id, in: core.folder, core.files))
            (etag, size, crc32c) = (object.etag, length, object.crc32c)
            try await context.table.note(
                transfer.attempt,
                [.restart, .object(etag: etag, size: size, crc32c: crc32c), .handedOver(core.now())])
            meter.restart(arrived: 0)
            try await background.download(
                transfer.location, etag: etag, as: transfer.id, to: URL(filePath: path))
            context.report(.handedOver, transfer.id)
        }
        guard let object = try await background.outcome(of: transfer.id) else {
            throw ObjectError(.interrupted, "Nothing is known any more of the download that was handed over")
        }
        guard object.etag == etag else {
            throw ObjectError(.changed, "\(transfer.location) has the ETag \(object.etag) by now, no longer \(etag)")
        }
        let file = try PartialFile(of: transfer.id, in: core.folder, core.files)
        let identity = try file.identity()
        guard identity.size == size else {
            throw ObjectError(
                .wrongLength, "The file that was received has \(identity.size) bytes, \(transfer.location) has \(size)")
        }
        let plan = Plan(etag: etag, crc32c: crc32c, parts: try PartPlan(of: size, in: max(size, 1)), arrived: [:])
        var parts: [StoredPart] = []
        if size > 0 { parts = [StoredPart(number: 1, size: size, crc32c: try await file.checksum(0..<size))] }
        try await context.table.note(
            transfer.attempt, [.partSize(plan.parts.partSize), .file(identity), .parts(parts)])
        context.report(.partNoted, transfer.id)
        let crc: UInt32
        do { crc = try await verified(plan, file) } catch let error as LarderError where error.code == .damagedDownload
        {
            // It is received anew, whole.
            try await context.table.note(transfer.attempt, [.restart])
            throw ObjectError(.checksum, "The file that was received has other bytes than \(transfer.location)")
        }
        return try await place(file, plan, crc, mayBeThere: isKnown)
    }
}
