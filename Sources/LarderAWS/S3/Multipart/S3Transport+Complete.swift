public import Larder
import NIOHTTP1

extension S3Transport {
    public func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        let deadline = SuspendingClock.now + time
        guard !parts.isEmpty, zip(parts, parts.dropFirst()).allSatisfy({ $0.number < $1.number }) else {
            throw ObjectError(.unusableRequest, "An object is put together from parts whose numbers ascend.")
        }
        let whole = sendsChecksums ? PartsSummary(parts) : nil
        var request = S3Request(.POST, upload)
        request.headers = [("content-type", "application/xml")]
        // So that what is wrong is refused, rather than found out when it has replaced what was there. Others may not
        // know checksums of wholes, and take this for one of checksums.
        if let whole, try endpoint.isAmazon {
            request.headers += [
                (BodyFraming.trailerName, Checksums.text(whole.crc32c)), ("x-amz-checksum-type", "FULL_OBJECT"),
                ("x-amz-mp-object-size", String(whole.size)),
            ]
        }
        request.content = Array(content(parts).utf8)
        return try await ask(request, deadline: deadline) { answer throws(S3Refusal) in
            let document = try answer.document("CompleteMultipartUpload")
            guard let etag = document["ETag"], StorageName.isUsable(etag),
                answer.headers.version.map(StorageName.isUsable) ?? true
            else {
                throw S3Refusal(
                    answer.unusable("The storage did not say the object's ETag, or said a name of more than 2 KiB."))
            }
            let crc32c = document["ChecksumType"] == "COMPOSITE" ? nil : Checksums.crc32c(document["ChecksumCRC32C"])
            let isRight =
                crc32c.flatMap { crc32c in whole.map { crc32c == $0.crc32c } }
                ?? Self.isRight(etag, parts, answer.headers)
            guard isRight else {
                throw S3Refusal(
                    ObjectError(
                        .checksum, "The object that was put together is not made of the parts that were sent.",
                        status: answer.status, requestID: answer.headers.requestID, hostID: answer.headers.hostID))
            }
            return StoredObject(
                etag: etag, size: whole?.size ?? PartsSummary.size(parts), version: answer.headers.version,
                crc32c: crc32c ?? whole?.crc32c)
        }
    }

    private func content(_ parts: [UploadedPart]) -> String {
        let lines = parts.map { part in
            let checksum = sendsChecksums ? part.crc32c : nil
            return "<Part><PartNumber>\(part.number)</PartNumber><ETag>\(XMLNode.escaped(part.etag))</ETag>"
                + (checksum.map { "<ChecksumCRC32C>\(Checksums.text($0))</ChecksumCRC32C>" } ?? "") + "</Part>"
        }
        return "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            + lines.joined() + "</CompleteMultipartUpload>"
    }

    /// Whether an ETag is that of the parts, as far as it can be said.
    private static func isRight(_ etag: String, _ parts: [UploadedPart], _ headers: HTTPHeaders) -> Bool {
        let tag = EntityTag(etag)
        guard !headers.isEncryptedByKey, tag.md5 != nil, tag.parts != nil,
            let made = EntityTag(ofParts: parts.map { EntityTag($0.etag) })
        else { return true }
        return tag == made
    }
}
