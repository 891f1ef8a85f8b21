public import Larder
import NIOHTTP1

extension S3Transport {
    public func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload {
        let deadline = SuspendingClock.now + time
        var request = S3Request(.POST, bucket: location.bucket, key: location.key, region: location.region)
        request.query = [("uploads", "")]
        request.headers = try S3Request.fields(of: attributes)
        if sendsChecksums {
            // Of the whole, so that the storage can say it of the object and downloads can be compared with it.
            request.headers += [("x-amz-checksum-algorithm", "CRC32C"), ("x-amz-checksum-type", "FULL_OBJECT")]
        }
        return try await ask(request, deadline: deadline) { answer throws(S3Refusal) in
            let document = try answer.document("InitiateMultipartUpload")
            guard let id = document["UploadId"], StorageName.isUsable(id) else {
                throw S3Refusal(
                    answer.unusable(
                        "The storage began an upload and does not say its name, or says one of more than 2 KiB."))
            }
            return MultipartUpload(location: location, id: id)
        }
    }

    public func putPart(
        _ number: Int, _ body: ObjectBody, of upload: MultipartUpload, idle: Duration
    ) async throws(ObjectError) -> UploadedPart {
        guard (1...max(1, limits.maximumParts)).contains(number) else {
            throw ObjectError(.unusableRequest, "There can be no part \(number).")
        }
        var request = S3Request(.PUT, upload)
        request.query.append(("partNumber", String(number)))
        let sent = try await send(body, request, idle: idle)
        guard let etag = sent.answer.headers.first(name: "ETag"), StorageName.isUsable(etag) else {
            throw sent.answer.unusable("The storage did not say the part's ETag, or said one of more than 2 KiB.")
        }
        return UploadedPart(number: number, size: body.size, etag: etag, crc32c: sent.crc32c)
    }

    public func abortUpload(
        _ upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) {
        let deadline = SuspendingClock.now + time
        do throws(ObjectError) {
            try await ask(S3Request(.DELETE, upload), deadline: deadline) { answer throws(S3Refusal) in
                try answer.requireSuccess()
            }
        } catch {
            // No code is no XML, as of a storage that forgets uploads without a trace.
            guard error.code == .noSuchUpload || (error.code == .notFound && error.serverCode == nil) else {
                throw error
            }
        }
    }

    /// Whether bodies are sent with checksums that the storage compares.
    var sendsChecksums: Bool {
        switch options.payload {
        case .automatic, .unsignedTrailer, .signedTrailer: true
        case .signed, .unsigned: false
        }
    }
}

extension S3Request {
    /// A request of an upload in parts.
    init(_ method: HTTPMethod, _ upload: MultipartUpload) {
        self.init(method, bucket: upload.location.bucket, key: upload.location.key, region: upload.location.region)
        query = [("uploadId", upload.id)]
    }
}
