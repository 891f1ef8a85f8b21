import Foundation
import LarderOperations

// What is stored of a transfer, as the storage is told of it.

extension StoredTransfer {
    var location: ObjectLocation { ObjectLocation(bucket: bucket, key: key, region: region, storage: storage) }

    /// The upload in parts that the storage has begun for it, by the name that was noted.
    var multipartUpload: MultipartUpload? { upload.map { MultipartUpload(location: location, id: $0) } }

    /// Whether the storage has begun an upload in parts for it, or was asked to.
    var hasUpload: Bool { upload != nil || uploadsBefore != nil }

    /// Whether a request can bear its names at all. No storage has objects or uploads of longer ones: such a row was
    /// damaged, and has left nothing behind under these names.
    var isNameable: Bool { bucket.utf8.count + key.utf8.count + (upload?.utf8.count ?? 0) <= 8 << 10 }
}

extension UploadedPart {
    init(_ part: StoredPart) {
        self.init(number: part.number, size: part.size, etag: part.etag ?? "", crc32c: part.crc32c)
    }
}

extension ObjectAttributes {
    /// Bytes of all names and values of metadata, and of a content type: S3 keeps no more metadata with an object.
    static let maximumSize = 2 << 10

    /// Refuses what would go into the head of each request and that no storage would keep.
    func check() throws(LarderError) {
        let size = metadata.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
        guard size <= Self.maximumSize else {
            throw LarderError(
                .invalidTransfer,
                "The metadata has \(size) bytes, an object keeps \(Self.maximumSize); put the rest "
                    + "elsewhere, such as into an object of its own")
        }
        let type = contentType?.utf8.count ?? 0
        guard type <= Self.maximumSize else {
            throw LarderError(
                .invalidTransfer, "The content type has \(type) bytes, \(Self.maximumSize) are allowed; shorten it")
        }
    }

    /// As it is kept; nil where there is none.
    var storedMetadata: [UInt8]? {
        get throws(LarderError) {
            guard !metadata.isEmpty else { return nil }
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            do { return Array(try encoder.encode(metadata)) } catch {
                throw LarderError(.invalidTransfer, "The metadata cannot be kept", cause: error)
            }
        }
    }

    init(of transfer: StoredTransfer) throws(LarderError) {
        self.init(contentType: transfer.contentType)
        guard let stored = transfer.metadata else { return }
        do { metadata = try JSONDecoder().decode([String: String].self, from: Data(stored)) } catch {
            throw LarderError(.invalidTransfer, "The metadata is not as it was kept", cause: error)
        }
    }
}
