import Larder

/// A storage that takes uploads in parts, and has none under way: what the storages of this program have in common.
protocol StandInStorage: ObjectTransport {}

extension StandInStorage {
    func host(of location: ObjectLocation) -> String { location.bucket }

    func beginUpload(
        to location: ObjectLocation, _ attributes: ObjectAttributes, within time: Duration
    ) async throws(ObjectError) -> MultipartUpload { MultipartUpload(location: location, id: "upload") }

    func completeUpload(
        _ upload: MultipartUpload, _ parts: [UploadedPart], within time: Duration
    ) async throws(ObjectError) -> StoredObject {
        StoredObject(etag: "\"whole\"", size: parts.reduce(0) { $0 + ($1.size ?? 0) })
    }

    func uploads(
        in bucket: String, region: String?, prefix: String, within time: Duration
    ) async throws(ObjectError) -> [MultipartUpload] { [] }

    func abortUpload(_ upload: MultipartUpload, within time: Duration) async throws(ObjectError) {}
}
