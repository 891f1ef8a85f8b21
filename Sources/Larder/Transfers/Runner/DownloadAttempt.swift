import Foundation
import LarderFiles
import LarderOperations

/// One try to receive an object.
struct DownloadAttempt: Sendable {
    let context: TransferContext
    let transfer: StoredTransfer
    let meter: TransferMeter

    private var storage: any ObjectTransport { context.storage }
    private var options: TransferRunner.Options { context.options }
    private var location: ObjectLocation { transfer.location }
    private var destination: DestinationFile {
        DestinationFile(of: transfer, context.core.files)
    }

    /// Storages do not mind how many ranges there are; each has a row.
    private static let maximumParts: Int64 = 10_000

    /// What the download is to receive, as it was noted.
    struct Plan: Sendable {
        var etag: String
        var crc32c: UInt32?
        var parts: PartPlan
        /// Parts that were noted before this attempt.
        var arrived: [Int: StoredPart]
    }

    /// - Returns: The object whose bytes are in their place.
    func run() async throws -> StoredObject {
        if let object = try await movedObject() { return object }
        // What this process has begun, it goes on with.
        if let background = options.boundedBackground, transfer.storage == nil,
            transfer.arrived == 0 || transfer.handedOver != nil
        {
            return try await handOver(background)
        }
        let file = try PartialFile(of: transfer.id, in: context.core.folder, context.core.files)
        let plan: Plan
        if let known = try await known(file) { plan = known } else { plan = try await begin(file) }
        let count = plan.parts.count
        let missing = count == 0 ? [] : (1...count).filter { plan.arrived[$0] == nil }
        try await receive(missing, plan, file)
        // Bytes in the file from before may have been lost with the power, while their note was kept.
        var lost: [Int] = []
        for part in plan.arrived.values {
            let found = try await file.checksum(plan.parts.range(of: part.number))
            if found != part.crc32c { lost.append(part.number) }
        }
        if !lost.isEmpty {
            try await context.table.note(transfer.attempt, [.lost(lost)])
            try await receive(lost, plan, file)
        }
        let crc: UInt32
        do {
            crc = try await verified(plan, file)
        } catch let error as LarderError where error.code == .damagedDownload {
            // It may have become so on its way: once more, all of it.
            let all = count == 0 ? [] : Array(1...count)
            try await context.table.note(transfer.attempt, [.lost(all)])
            meter.restart(arrived: 0)
            try await receive(all, plan, file)
            crc = try await verified(plan, file)
        }
        return try await place(file, plan, crc, mayBeThere: missing.isEmpty)
    }

    /// Puts a file whose bytes were verified in its place.
    ///
    /// - Parameter mayBeThere: Whether an attempt before this one may have done so.
    func place(_ file: PartialFile, _ plan: Plan, _ crc: UInt32, mayBeThere: Bool) async throws -> StoredObject {
        if let sha256 = transfer.sha256, try await file.sha256(0..<plan.parts.size) != sha256 { throw otherContent }
        let isThere = mayBeThere ? try await destination.isSame(as: file) : false
        if isThere { try destination.synchronizeFolder() } else { try await destination.take(file) }
        context.report(.fileMoved, transfer.id)
        return StoredObject(etag: plan.etag, size: plan.parts.size, crc32c: crc)
    }

    // MARK: Beginning

    /// What an attempt before this one has begun, if the partial file is still its own, on whatever device. What it has
    /// is compared with the checksums that were noted.
    private func known(_ file: PartialFile) async throws -> Plan? {
        guard let etag = transfer.etag, let size = transfer.size, let partSize = transfer.partSize,
            let noted = transfer.file
        else { return nil }
        let found = try file.identity()
        guard found.inode == noted.inode, found.size == size else { return nil }
        if found.device != noted.device { try await context.table.note(transfer.attempt, [.file(found)]) }
        let arrived = try context.table.parts(of: transfer.id).map { ($0.number, $0) }
        return Plan(
            etag: etag, crc32c: transfer.crc32c, parts: try PartPlan(of: size, in: partSize),
            arrived: Dictionary(arrived) { $1 })
    }

    private func begin(_ file: PartialFile) async throws -> Plan {
        let (object, size) = try await wantedObject()
        // Ranges of an object whose ETag is weak may be of different bytes: it comes in one piece.
        let partSize = EntityTag(object.etag).isWeak ? size : max(options.partSize, size / Self.maximumParts + 1)
        let parts = try PartPlan(of: size, in: max(partSize, 1))
        try requireRoom(for: size, file)
        try file.reserve(size)
        try await context.table.note(
            transfer.attempt,
            [
                .restart, .object(etag: object.etag, size: size, crc32c: object.crc32c), .partSize(parts.partSize),
                .file(try file.identity()),
            ])
        meter.restart(arrived: 0)
        return Plan(etag: object.etag, crc32c: object.crc32c, parts: parts, arrived: [:])
    }

    /// What the storage says of the object now, and its size.
    func wantedObject() async throws -> (object: StoredObject, size: Int64) {
        try destination.check()
        let object = try await storage.object(at: location, within: .until(context.deadline))
        guard let size = object.size, size >= 0 else {
            throw ObjectError(.unusableAnswer, "The storage does not say how large \(location) is")
        }
        if let wanted = transfer.sha256, let said = object.sha256, said != wanted { throw otherContent }
        return (object, size)
    }

    func requireRoom(for size: Int64, _ file: PartialFile) throws {
        // What it took before is free now.
        try file.reserve(0)
        // On another volume it is needed twice for a while.
        let room = min(try file.room(), try destination.room(besides: try file.identity()) ?? .max)
        guard size <= room else {
            throw LarderError(
                .diskFull,
                "\(location) has \(size) bytes, and the disk room for \(room); make some, and retry the transfer")
        }
    }

    /// The object, where the partial file was put in its place and that was not noted any more. The file there has the
    /// bytes that were noted, whatever its number: the system gives numbers of files that are gone to others.
    private func movedObject() async throws -> StoredObject? {
        guard let etag = transfer.etag, let size = transfer.size, let noted = transfer.file,
            let found = destination.identity, found.inode == noted.inode, found.size == size
        else { return nil }
        let parts = try context.table.parts(of: transfer.id)
        guard let whole = PartsSummary(parts.map(UploadedPart.init)), whole.size == size,
            let moved = try? SourceFile(path: transfer.path, identity: found, context.core.files),
            (try? await moved.checksum(0..<size)) == whole.crc32c
        else { return nil }
        try destination.synchronizeFolder()
        return StoredObject(etag: etag, size: size, crc32c: transfer.crc32c)
    }

    // MARK: Receiving

    private func receive(_ numbers: [Int], _ plan: Plan, _ file: PartialFile) async throws {
        try await context.move(numbers, of: transfer, meter) { try await receive($0, plan, file) }
    }

    private func receive(_ number: Int, _ plan: Plan, _ file: PartialFile) async throws -> StoredPart {
        let crc = Locked(CRC32C())
        let sink = ObjectSink { offset, bytes in
            try file.write(offset, bytes)
            crc.withLock { $0.update(bytes) }
        } pace: { count in
            try await context.pacer.wait(for: count)
            meter.move(count, of: number)
        }
        let object = try await storage.get(
            plan.parts.range(of: number), of: location, etag: plan.etag, into: sink, idle: options.idle)
        try await requireSame(object, plan)
        file.beginSynchronizing(plan.parts.range(of: number))
        return StoredPart(number: number, size: plan.parts.size(of: number), crc32c: crc.withLock { $0.value })
    }

    /// Compares what the storage says of the object with what it said at first. A size that was another is not kept: by
    /// it the file would end too early, or never.
    private func requireSame(_ object: StoredObject, _ plan: Plan) async throws {
        guard object.etag == plan.etag else {
            throw ObjectError(.changed, "\(location) has the ETag \(object.etag) by now, no longer \(plan.etag)")
        }
        guard let size = object.size, size != plan.parts.size else { return }
        try await context.table.note(transfer.attempt, [.restart])
        throw ObjectError(
            .wrongLength, "The storage says that \(location) has \(size) bytes, and said \(plan.parts.size)")
    }

    // MARK: Verifying

    func verified(_ plan: Plan, _ file: PartialFile) async throws -> UInt32 {
        // The disk works while the processor does.
        async let synchronized: Void = file.synchronize()
        let crc = try await verify(plan, file)
        try await synchronized
        return crc
    }

    /// Compares what arrived with what the storage says of the object: its checksum, or its ETag where that is an
    /// MD5.
    ///
    /// - Returns: CRC-32C of the whole.
    private func verify(_ plan: Plan, _ file: PartialFile) async throws -> UInt32 {
        let parts = try context.table.parts(of: transfer.id)
        guard parts.count == plan.parts.count, let whole = PartsSummary(parts.map(UploadedPart.init)) else {
            throw LarderError(
                .damagedDownload, "Of \(plan.parts.count) parts \(parts.count) have arrived; retry the transfer")
        }
        if let said = plan.crc32c {
            guard said == whole.crc32c else { throw damaged }
            return whole.crc32c
        }
        let object = try await storage.object(at: location, within: .until(context.deadline))
        try await requireSame(object, plan)
        if let sha256 = object.sha256 {
            guard try await file.sha256(0..<plan.parts.size) == sha256 else { throw damaged }
        } else if object.etagIsDigest, let md5 = EntityTag(plan.etag).wholeMD5 {
            guard try await file.digests(0..<plan.parts.size).md5 == md5 else { throw damaged }
        }
        return whole.crc32c
    }

    private var otherContent: LarderError {
        LarderError(.otherContent, "\(location) has not the SHA-256 that it was to have")
    }

    private var damaged: LarderError {
        LarderError(
            .damagedDownload,
            "The bytes that arrived of \(location) are not those that the storage announced; retry the transfer")
    }
}
