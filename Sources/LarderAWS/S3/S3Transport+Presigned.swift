public import Foundation
public import Larder

extension S3Transport {
    /// What a presigned URL is for.
    public enum PresignedUse: String, Sendable, Hashable {
        /// To read the object.
        case get = "GET"
        /// To read the object's attributes alone.
        case head = "HEAD"
        /// To write the object.
        case put = "PUT"
    }

    /// A URL by which its holder may do one thing with one object for a while, without credentials.
    ///
    /// It ends with the credentials that signed it, if that is sooner. It is of the region that the bucket is known to
    /// be in; the storage is not asked.
    ///
    /// - Parameters:
    ///   - use: What the holder of the URL may do.
    ///   - location: The bucket and the key.
    ///   - lifetime: From a second to seven days, in whole seconds.
    ///   - time: How long the credentials may be waited for.
    /// - Throws: `.unusableRequest` for another time; otherwise as the credentials and the location do.
    public func presignedURL(
        _ use: PresignedUse, _ location: ObjectLocation, expiresAfter lifetime: Duration,
        within time: Duration = .seconds(30)
    ) async throws(ObjectError) -> URL {
        try await presignedURL(use, location, headers: [], expiresAfter: lifetime, by: .now + time)
    }

    /// - Parameter headers: That the request must have beside its host.
    func presignedURL(
        _ use: PresignedUse, _ location: ObjectLocation, headers: [(name: String, value: String)],
        expiresAfter lifetime: Duration, by deadline: SuspendingClock.Instant
    ) async throws(ObjectError) -> URL {
        let seconds = Int(clamping: lifetime.components.seconds)
        guard (1...604_800).contains(seconds) else {
            throw ObjectError(
                .unusableRequest, "A presigned URL is good for a second to seven days, not for \(lifetime).")
        }
        let region = region(of: location.bucket, said: location.region)
        let address = try endpoint.address(bucket: location.bucket, key: location.key, region: region)
        let signature = SignatureV4(
            credentials: try await ExchangeClock(deadline: deadline).limiting { () async throws(ObjectError) in
                try await self.credentials(by: deadline)
            },
            time: signingTime, region: region)
        let request = CanonicalRequest(
            method: use.rawValue, path: address.path, query: [], headers: headers + [("host", address.host)],
            payloadHash: .unsigned)
        let query = signature.presignedQuery(of: request, seconds: seconds)
        guard let url = URL(string: "\(address.scheme)://\(address.host)\(address.path)?\(query)") else {
            throw ObjectError(.unusableRequest, "\(location) cannot be written as a URL.")
        }
        return url
    }
}
