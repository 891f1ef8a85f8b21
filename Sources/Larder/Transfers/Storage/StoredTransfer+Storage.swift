internal import Foundation
internal import LarderOperations

// What is stored of a transfer, as the storage is told of it.

extension StoredTransfer {
    var location: ObjectLocation { ObjectLocation(bucket: bucket, key: key, region: region) }

    /// The upload in parts that the storage has begun for it, by the name that was noted.
    var multipartUpload: MultipartUpload? { upload.map { MultipartUpload(location: location, id: $0) } }

    /// Whether the storage has begun an upload in parts for it, or was asked to.
    var hasUpload: Bool { upload != nil || uploadsBefore != nil }
}

extension UploadedPart {
    init(_ part: StoredPart) {
        self.init(number: part.number, size: part.size, etag: part.etag ?? "", crc32c: part.crc32c)
    }
}

extension ObjectAttributes {
    /// As it is kept; nil where there is none.
    var storedMetadata: [UInt8]? {
        get throws(LarderError) {
            guard !metadata.isEmpty else { return nil }
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            do { return Array(try encoder.encode(metadata)) } catch {
                throw LarderError(.invalidTransfer, "the metadata cannot be kept", cause: error)
            }
        }
    }

    init(of transfer: StoredTransfer) throws(LarderError) {
        self.init(contentType: transfer.contentType)
        guard let stored = transfer.metadata else { return }
        do { metadata = try JSONDecoder().decode([String: String].self, from: Data(stored)) } catch {
            throw LarderError(.invalidTransfer, "the metadata is not as it was kept", cause: error)
        }
    }
}
