import Foundation
import LarderOperations

extension UploadAttempt {
    /// Has the file sent outside of this program, or waits for what an attempt before this one has handed over.
    func handOver(
        _ source: SourceFile, size: Int64, _ background: any BackgroundTransport
    ) async throws -> StoredObject {
        let sent = try await Sent(source, size: size, ObjectAttributes(of: transfer))
        if try await !background.known().contains(transfer.id) {
            // The storage may have the object although no answer to an earlier attempt is known.
            if transfer.attempts > 1, let object = try await object(of: sent) { return object }
            try source.check()
            try await context.table.note(transfer.attempt, [.handedOver(context.core.now())])
            try await background.upload(
                URL(filePath: transfer.path), as: transfer.id, to: transfer.location, sent.attributes,
                crc32c: sent.crc32c)
            context.report(.handedOver, transfer.id)
        }
        doubt.begin(lasting: context.options.idle)
        let found: StoredObject?
        do throws(ObjectError) { found = try await background.outcome(of: transfer.id) } catch {
            doubt.end(unless: error)
            // Where the file was written to meanwhile, the storage may have refused it for that, in whatever words.
            if error.code != .cancelled { try source.check() }
            throw error
        }
        guard let object = found else {
            throw ObjectError(.interrupted, "Nothing is known any more of the upload that was handed over")
        }
        doubt.end()
        try source.check()
        guard sent.isWhat(object) != false else {
            throw ObjectError(.checksum, "The storage has other bytes than the file; it was handed over before")
        }
        context.report(.objectMade, transfer.id)
        return object
    }

    /// The object, if the storage has it already as it is to be.
    private func object(of sent: Sent) async throws -> StoredObject? {
        do throws(ObjectError) {
            let object = try await context.storage.object(at: transfer.location, within: .until(context.deadline))
            guard object.size == sent.size, sent.isWhat(object) == true,
                object.attributes.metadata == sent.attributes.metadata,
                sent.attributes.contentType.map({ $0 == object.attributes.contentType }) ?? true
            else { return nil }
            return object
        } catch {
            // A user who may send objects need not be allowed to look at them.
            guard [.notFound, .accessDenied].contains(error.code) else { throw error }
            return nil
        }
    }

    /// What the object is to be.
    private struct Sent {
        let size: Int64
        let attributes: ObjectAttributes
        let crc32c: UInt32
        private let md5: [UInt8]

        init(_ source: SourceFile, size: Int64, _ attributes: ObjectAttributes) async throws {
            (self.size, self.attributes) = (size, attributes)
            (crc32c, md5) = try await source.digests(0..<size)
        }

        /// Whether an object has these bytes; nil where the storage does not tell.
        func isWhat(_ object: StoredObject) -> Bool? {
            if let found = object.crc32c { return found == crc32c }
            guard object.etagIsDigest, let found = EntityTag(object.etag).wholeMD5 else { return nil }
            return found == md5
        }
    }
}
