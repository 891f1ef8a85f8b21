public import Foundation
public import Larder
import NIOHTTP1

/// Uploads to S3, and downloads from it, by requests that are signed once and made outside of this program.
///
/// ```swift
/// var options = RunOptions(storage: s3)
/// options.transfers.background = S3BackgroundTransport(s3, executor: executor)
/// try await app.run(options)
/// ```
///
/// The storage compares the file's CRC-32C, which is signed with the request, with what arrives; a download names the
/// ETag that the object must have. A request is good for
/// a week, and for no longer than the credentials that have signed it: one that is sent later is refused, and signed
/// anew by the next attempt.
public struct S3BackgroundTransport: BackgroundTransport {
    private static let lifetime = Duration.seconds(604_800)

    private let storage: S3Transport
    private let executor: any BackgroundExecutor

    /// - Parameters:
    ///   - storage: Signs requests, and reads what is answered to them.
    ///   - executor: Makes them.
    public init(_ storage: S3Transport, executor: any BackgroundExecutor) {
        (self.storage, self.executor) = (storage, executor)
    }

    public func known() async throws(ObjectError) -> Set<UUID> { try await executor.known() }

    public func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError) {
        let headers =
            try S3Request.fields(of: attributes) + [
                (BodyFraming.trailerName, Checksums.text(crc32c))
            ]
        try await begin(.put, location, headers, file, as: id)
    }

    public func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError) {
        // No weak one is ever the same by `If-Match` (RFC 9110, section 13.1.1); what was received is compared.
        try await begin(.get, location, EntityTag(etag).isWeak ? [] : [("if-match", etag)], file, as: id)
    }

    private func begin(
        _ use: PresignedUse, _ location: ObjectLocation, _ headers: [(name: String, value: String)], _ file: URL,
        as id: UUID
    ) async throws(ObjectError) {
        let deadline = SuspendingClock.now + .seconds(30)
        // The executor follows no storage to another region and corrects no clock. Both are learned from any answer.
        do throws(ObjectError) { _ = try await storage.object(at: location, within: .until(deadline)) } catch {
            guard [.notFound, .accessDenied].contains(error.code) else { throw error }
        }
        let url = try await storage.presignedURL(
            use, location, headers: headers, expiresAfter: Self.lifetime, by: deadline)
        let fields = Dictionary(headers.map { ($0.name, $0.value) }) { $1 }
        try await executor.begin(FileRequest(url: url, method: use.rawValue, headers: fields, file: file), as: id)
    }

    public func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
        guard let response = try await executor.response(to: id) else { return nil }
        let answer = S3Answer(
            status: response.status, headers: HTTPHeaders(response.headers.map { ($0.key, $0.value) }),
            body: response.body)
        do throws(S3Refusal) {
            guard (200..<300).contains(answer.status) else {
                throw S3Refusal(answer: answer, wallClock: storage.options.wallClock)
            }
            try answer.requireSuccess()
            return try answer.headers.object(size: nil)
        } catch {
            var error = error.error
            // Of what was signed too long ago the storage says no more than that access is denied, and why.
            if error.code == .accessDenied, error.message.contains("expired") { error.code = .interrupted }
            throw error
        }
    }

    public func end(_ id: UUID) async throws(ObjectError) { try await executor.end(id) }
}

extension S3BackgroundTransport {
    private typealias PresignedUse = S3Transport.PresignedUse
}
