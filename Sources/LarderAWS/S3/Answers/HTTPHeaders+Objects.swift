import Larder
import NIOHTTP1

extension HTTPHeaders {
    /// Whether the object is encrypted so that its ETag is not made of its bytes.
    var isEncryptedByKey: Bool {
        first(name: "x-amz-server-side-encryption")?.lowercased().hasPrefix("aws:kms") ?? false
            || contains(name: "x-amz-server-side-encryption-customer-algorithm")
    }

    /// What they say of an object.
    func object(size: Int64?) throws(S3Refusal) -> StoredObject {
        guard let etag = first(name: "ETag"), StorageName.isUsable(etag) else {
            throw unusable("The storage did not say the object's ETag, or said one of more than 2 KiB.")
        }
        guard version.map(StorageName.isUsable) ?? true else {
            throw unusable("The storage said an empty version of the object, or one of more than 2 KiB.")
        }
        let isOfParts = first(name: "x-amz-checksum-type")?.uppercased() == "COMPOSITE"
        return StoredObject(
            etag: etag, etagIsDigest: !isEncryptedByKey, size: size, version: version,
            crc32c: isOfParts ? nil : Checksums.crc32c(first(name: BodyFraming.trailerName)),
            sha256: isOfParts ? nil : Checksums.sha256(first(name: "x-amz-checksum-sha256")),
            attributes: ObjectAttributes(contentType: first(name: "Content-Type"), metadata: metadata))
    }

    private func unusable(_ message: String) -> S3Refusal {
        S3Refusal(ObjectError(.unusableAnswer, message, requestID: requestID, hostID: hostID))
    }

    var version: String? { first(name: "x-amz-version-id") }

    fileprivate static let metadataPrefix = "x-amz-meta-"

    private var metadata: [String: String] {
        var metadata: [String: String] = [:]
        for (name, value) in self where name.lowercased().hasPrefix(Self.metadataPrefix) {
            metadata[String(name.lowercased().dropFirst(Self.metadataPrefix.count))] = value
        }
        return metadata
    }
}

extension S3Request {
    /// The headers that keep attributes with an object.
    static func fields(of attributes: ObjectAttributes) throws(ObjectError) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        if let type = attributes.contentType { fields.append(("content-type", type)) }
        for (name, value) in attributes.metadata.sorted(by: { $0.key < $1.key }) {
            fields.append((HTTPHeaders.metadataPrefix + name.lowercased(), value))
        }
        var names: Set<String> = []
        for (name, value) in fields {
            guard name.utf8.allSatisfy(isToken), value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
                names.insert(name).inserted
            else {
                throw ObjectError(
                    .unusableRequest,
                    "\"\(name)\" cannot be kept with an object: names are HTTP's, and told apart without regard to "
                        + "case; values are printable ASCII.")
            }
        }
        return fields
    }

    private static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"): true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
