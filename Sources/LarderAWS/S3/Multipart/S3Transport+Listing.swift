public import Larder

extension S3Transport {
    public func parts(
        of upload: MultipartUpload, within time: Duration
    ) async throws(ObjectError) -> [UploadedPart] {
        let deadline = SuspendingClock.now + time
        var parts: [UploadedPart] = []
        var marker: Int?
        var pages = ListedPages<Int>(maximumSize: maximumListSize)
        repeat {
            var request = S3Request(.GET, upload)
            if let marker { request.query.append(("part-number-marker", String(marker))) }
            let page = try await ask(request, deadline: deadline) { answer throws(S3Refusal) in
                let document = try answer.document("ListParts")
                let parts = try document.all("Part").map { node throws(S3Refusal) in
                    guard let part = UploadedPart(node) else {
                        throw S3Refusal(answer.unusable("The storage lists a part without a number and an ETag."))
                    }
                    return part
                }
                var marker: Int?
                if let next = try Self.next(document, answer, "NextPartNumberMarker") {
                    guard let number = Int(next) else {
                        throw S3Refusal(answer.unusable("The storage's list goes on at a part without a number."))
                    }
                    marker = number
                }
                return (parts: parts, next: marker, size: answer.body.count)
            }
            try pages.add(page.size, next: page.next)
            parts += page.parts
            marker = page.next
        } while marker != nil
        // One that is listed twice, as where pages overlap, is what was said of it last.
        return Dictionary(parts.map { ($0.number, $0) }) { $1 }.values.sorted { $0.number < $1.number }
    }

    public func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] {
        let deadline = SuspendingClock.now + time
        var uploads: [MultipartUpload] = []
        var marker: UploadMarker?
        var pages = ListedPages<UploadMarker>(maximumSize: maximumListSize)
        repeat {
            var request = S3Request(.GET, bucket: bucket, key: nil, region: region)
            // XML cannot hold all that a key can.
            request.query = [("uploads", ""), ("prefix", prefix), ("encoding-type", "url")]
            if let marker {
                request.query += [("key-marker", marker.key), ("upload-id-marker", marker.id)]
            }
            let page = try await ask(request, deadline: deadline) { answer throws(S3Refusal) in
                let document = try answer.document("ListMultipartUploads")
                let isEncoded = document["EncodingType"] == "url"
                func key(_ text: String?) throws(S3Refusal) -> String {
                    guard let text, let key = isEncoded ? URIEncoding.decoded(text) : text, StorageName.isUsable(key)
                    else {
                        throw S3Refusal(answer.unusable("The storage lists an upload without a key that can be read."))
                    }
                    return key
                }
                func id(_ text: String?) throws(S3Refusal) -> String {
                    guard let text, StorageName.isUsable(text) else {
                        throw S3Refusal(
                            answer.unusable("The storage lists an upload without a name, or one of more than 2 KiB."))
                    }
                    return text
                }
                let uploads = try document.all("Upload").map { node throws(S3Refusal) in
                    let location = ObjectLocation(bucket: bucket, key: try key(node["Key"]), region: region)
                    return MultipartUpload(location: location, id: try id(node["UploadId"]))
                }
                var marker: UploadMarker?
                if let next = try Self.next(document, answer, "NextKeyMarker") {
                    let next = try key(next)
                    let isNamed = document["NextUploadIdMarker"].map { !$0.isEmpty } ?? false
                    marker = UploadMarker(key: next, id: isNamed ? try id(document["NextUploadIdMarker"]) : "")
                }
                return (uploads: uploads, next: marker, size: answer.body.count)
            }
            try pages.add(page.size, next: page.next)
            // The storage may not know of prefixes.
            uploads += page.uploads.filter { $0.location.key.utf8.starts(with: prefix.utf8) }
            marker = page.next
        } while marker != nil
        return uploads
    }

    /// Bytes of all answers that make one list.
    private var maximumListSize: Int { min(options.maximumAnswerSize, .max / 4) * 4 }

    /// Where a list goes on; nil where it has ended.
    private static func next(
        _ document: XMLNode, _ answer: S3Answer, _ name: String
    ) throws(S3Refusal) -> String? {
        guard document["IsTruncated"]?.lowercased() == "true" else { return nil }
        guard let next = document[name], !next.isEmpty else {
            throw S3Refusal(answer.unusable("The storage has more to list and does not say where to go on."))
        }
        return next
    }
}

/// Where a list of uploads goes on.
private struct UploadMarker: Sendable, Hashable {
    var key: String
    var id: String
}

extension UploadedPart {
    /// A part as the storage lists it; nil where that is none.
    fileprivate init?(_ node: XMLNode) {
        guard let number = node["PartNumber"].flatMap({ Int($0) }), number > 0, let etag = node["ETag"],
            StorageName.isUsable(etag)
        else { return nil }
        self.init(
            number: number, size: node["Size"].flatMap { Int64($0) }, etag: etag,
            crc32c: Checksums.crc32c(node["ChecksumCRC32C"]))
    }
}
