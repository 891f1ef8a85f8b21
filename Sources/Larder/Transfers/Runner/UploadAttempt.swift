import Foundation
import LarderOperations

/// One try to send a file.
struct UploadAttempt: Sendable {
    let context: TransferContext
    let transfer: StoredTransfer
    let meter: TransferMeter
    let doubt: UploadDoubt

    private var storage: any ObjectTransport { context.storage }
    private var background: (any BackgroundTransport)? {
        transfer.storage == nil ? context.options.boundedBackground : nil
    }
    private var options: TransferRunner.Options { context.options }
    private var location: ObjectLocation { transfer.location }

    /// - Returns: The object that the storage has.
    func run() async throws -> StoredObject {
        guard let identity = transfer.file else {
            throw LarderError(.invalidTransfer, "Nothing is known of the file that was queued")
        }
        let source: SourceFile
        do throws(LarderError) {
            source = try SourceFile(path: transfer.path, identity: identity, context.core.files)
        } catch {
            // It may have arrived before it went.
            guard let object = try await objectOfParts() else { throw error }
            try await context.abortForgotten(transfer.multipartUpload, of: transfer)
            return object
        }
        if source.identity != identity { try await context.table.note(transfer.attempt, [.file(source.identity)]) }
        // The SHA-256 is checked once, before the parts are planned. A retry with another file forgets the size of parts,
        // so that the check is made again.
        if let sha256 = transfer.sha256, transfer.partSize == nil {
            guard try await source.sha256(0..<identity.size) == sha256 else {
                throw LarderError(
                    .otherContent, "\(transfer.path) has not the SHA-256 that it was to have; nothing was sent")
            }
        }
        let limits = storage.limits
        let threshold = background == nil ? options.multipartThreshold : .max
        guard transfer.upload == nil, transfer.uploadsBefore == nil, identity.size <= min(threshold, limits.largestPut)
        else {
            return try await sendInParts(source, size: identity.size, limits)
        }
        if let background {
            return try await handOver(source, size: identity.size, background)
        }
        let host = storage.host(of: location)
        let attributes = try ObjectAttributes(of: transfer)
        return try await context.connections.with(host) {
            if identity.size == 0 { doubt.begin(lasting: options.idle) }
            let object: StoredObject
            do throws(ObjectError) {
                object = try await storage.put(
                    body(of: source, part: 1, 0..<identity.size) { doubt.begin(lasting: options.idle) }, to: location,
                    attributes, idle: options.idle)
                doubt.end()
            } catch {
                doubt.end(unless: error)
                throw error
            }
            try source.check()
            context.report(.objectMade, transfer.id)
            return object
        }
    }

    // MARK: In parts

    private func sendInParts(_ source: SourceFile, size: Int64, _ limits: ObjectLimits) async throws -> StoredObject {
        let planned = PartPlan.partSize(wanted: options.partSize, size: size, limits: limits)
        guard let partSize = transfer.partSize ?? planned else {
            throw ObjectError(
                .tooLarge, "\(transfer.path) has \(size) bytes, the storage takes \(limits.largestObject)")
        }
        let plan = try PartPlan(of: size, in: partSize)
        let (upload, arrived) = try await begin(source, plan)
        guard let upload else {
            let object = try await objectOfParts()
            try await context.abortForgotten(transfer.multipartUpload, of: transfer)
            if let object { return object }
            // Another client has aborted it, or it was completed as another object.
            try await context.table.note(transfer.attempt, [.restart])
            throw ObjectError(.noSuchUpload, "The storage has forgotten the upload; it begins anew")
        }
        let missing = plan.numbers.filter { arrived[$0] == nil }
        try await context.move(missing, of: transfer, meter) { try await send($0, of: upload, plan, source) }
        let parts = try context.table.parts(of: transfer.id)
        doubt.begin(lasting: options.completionTimeout)
        do throws(ObjectError) {
            let object = try await storage.completeUpload(
                upload, parts.map(UploadedPart.init), within: options.completionTimeout)
            doubt.end()
            context.report(.objectMade, transfer.id)
            if let before = transfer.uploadsBefore { await context.abortLate(of: location, after: before) }
            return object
        } catch {
            doubt.end(unless: error)
            guard error.code == .noSuchUpload, let object = try await objectOfParts() else { throw error }
            try await context.abortForgotten(upload, of: transfer)
            return object
        }
    }

    /// The upload in parts, and the parts that the storage has; no upload where the storage has forgotten it.
    private func begin(
        _ source: SourceFile, _ plan: PartPlan
    ) async throws -> (upload: MultipartUpload?, arrived: [Int: StoredPart]) {
        let attempt = transfer.attempt
        if let upload = transfer.multipartUpload {
            let listed: [UploadedPart]
            do throws(ObjectError) {
                listed = try await storage.parts(of: upload, within: .until(context.deadline))
            } catch {
                guard error.code == .noSuchUpload else { throw error }
                return (nil, [:])
            }
            // Nothing is noted of the plan where the file has changed since the upload was begun.
            if transfer.partSize == nil { try await context.table.note(attempt, [.partSize(plan.partSize)]) }
            return (upload, try await reconcile(listed, source, plan))
        }
        if let before = transfer.uploadsBefore { try await context.abortUnnoted(of: location, after: before) }
        var notes = [TransferNote.partSize(plan.partSize)]
        if let before = try await context.uploads(of: location) { notes.append(.uploadAsked(before: before)) }
        try await context.table.note(attempt, notes)
        context.report(.uploadAsked, transfer.id)
        let upload = try await storage.beginUpload(
            to: location, try ObjectAttributes(of: transfer), within: .until(context.deadline))
        context.report(.uploadBegun, transfer.id)
        try await context.table.note(attempt, [.upload(upload.id)])
        context.report(.uploadNoted, transfer.id)
        return (upload, [:])
    }

    private func send(
        _ number: Int, of upload: MultipartUpload, _ plan: PartPlan, _ source: SourceFile
    ) async throws -> StoredPart {
        try source.check()
        let range = plan.range(of: number)
        var body = body(of: source, part: number, range)
        // A write to the file meanwhile is noticed before anything is made of the part.
        body.file = source.segment(range.lowerBound)
        let part: UploadedPart
        do throws(ObjectError) {
            part = try await storage.putPart(number, body, of: upload, idle: options.idle)
        } catch {
            // Then the storage may have refused it for that, in whatever words.
            if error.code != .cancelled { try source.check() }
            throw error
        }
        // The bytes that were read were of the file that was queued.
        try source.check()
        return StoredPart(number: number, size: plan.size(of: number), etag: part.etag, crc32c: part.crc32c)
    }

    /// - Parameter willEnd: Called before the last bytes are sent.
    private func body(
        of source: SourceFile, part: Int, _ range: Range<Int64>, willEnd: @escaping @Sendable () -> Void = {}
    ) -> ObjectBody {
        var body = ObjectBody(size: range.upperBound - range.lowerBound) { offset, buffer in
            try source.read(range.lowerBound + offset, buffer)
            // Before the storage has all of it: bytes that are of no one version of the file must not replace the
            // object there.
            if offset + Int64(buffer.count) == range.upperBound - range.lowerBound {
                try source.check()
                willEnd()
            }
        } pace: { count in
            try await context.pacer.wait(for: count)
            meter.move(count, of: part)
        }
        body.turn = context.pacer.turn
        return body
    }

    // MARK: What the storage has

    /// Compares the noted parts with the storage's own list. A part that the storage has and that was not noted is
    /// noted, if it has the file's bytes there; a part that was noted and that the storage does not have is sent again.
    private func reconcile(
        _ listed: [UploadedPart], _ source: SourceFile, _ plan: PartPlan
    ) async throws -> [Int: StoredPart] {
        let noted = Dictionary(try context.table.parts(of: transfer.id).map { ($0.number, $0) }) { $1 }
        var arrived: [Int: StoredPart] = [:]
        var found: [StoredPart] = []
        for part in listed where plan.numbers.contains(part.number) {
            guard part.size == nil || part.size == plan.size(of: part.number) else { continue }
            if let known = noted[part.number], known.etag == part.etag {
                arrived[part.number] = known
            } else if let crc = try await checksum(of: part, source, plan.range(of: part.number)) {
                let new = StoredPart(
                    number: part.number, size: plan.size(of: part.number), etag: part.etag, crc32c: crc)
                arrived[part.number] = new
                found.append(new)
            }
        }
        let lost = noted.keys.filter { arrived[$0] == nil }.sorted()
        if !found.isEmpty || !lost.isEmpty {
            try await context.table.note(transfer.attempt, [.parts(found), .lost(lost)])
        }
        meter.restart(arrived: arrived.values.reduce(0) { $0 + $1.size })
        return arrived
    }

    /// CRC-32C of what the file has there; nil where the storage has something else, or does not say.
    private func checksum(
        of part: UploadedPart, _ source: SourceFile, _ range: Range<Int64>
    ) async throws -> UInt32? {
        let found = try await source.digests(range)
        if let known = part.crc32c, known != found.crc32c { return nil }
        // Some storages list the checksum that they were told, and have not looked. An ETag that is no MD5, as of an
        // encrypted object, costs that the part is sent again.
        if let md5 = EntityTag(part.etag).wholeMD5 { return md5 == found.md5 ? found.crc32c : nil }
        return part.crc32c
    }

    /// The object, if it is there and is what the parts that are noted make.
    private func objectOfParts() async throws -> StoredObject? {
        let parts = try context.table.parts(of: transfer.id)
        guard let size = transfer.size, !parts.isEmpty, parts.reduce(0, { $0 + $1.size }) == size else { return nil }
        let object: StoredObject
        do throws(ObjectError) {
            object = try await storage.object(at: location, within: .until(context.deadline))
        } catch {
            guard error.code == .notFound else { throw error }
            return nil
        }
        guard object.size == size else { return nil }
        if object.etagIsDigest, let made = EntityTag(ofParts: parts.compactMap(\.etag).map(EntityTag.init)) {
            return EntityTag(object.etag) == made ? object : nil
        }
        // The object is encrypted: the tags tell nothing of the bytes, and the object that was there before may be as
        // long.
        guard let whole = PartsSummary(parts.map(UploadedPart.init)) else { return nil }
        return object.crc32c == whole.crc32c ? object : nil
    }
}
