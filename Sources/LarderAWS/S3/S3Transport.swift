public import AsyncHTTPClient
import Foundation
public import Larder
import LarderFiles
import LarderHTTP

/// Objects to and from Amazon S3, and storages that speak as it does.
///
/// - **Every request is signed when it is sent** (Signature Version 4), with credentials that are asked for then. An
///   upload of hours does not fail because a signature has ended.
/// - **The bucket's region is found out**: where the storage says that a bucket is elsewhere, the request is sent there
///   once. Where it is taken there, later requests go there at once. A region that fails is forgotten.
/// - **A wrong clock is corrected**: where the storage refuses a request for its time, the storage's own is used, and
///   the request sent once more.
/// - **What arrived is what was sent**: by a CRC-32C that the storage compares and returns; where it returns none, by
///   an ETag that is an MD5. Where it is neither, as of what is encrypted by keys of its own, its word is taken.
/// - **Names and heads have bounds**: a name that the storage gives has at most 2 KiB (`.unusableAnswer`), the head of
///   a request at most 32 KiB (`.unusableRequest`).
/// - **Credentials of a session are renewed**: where the storage says that they have ended or that it does not know
///   them, the transport gets others, and sends the request once more.
/// - **Nothing else is repeated.** The caller decides that.
public final class S3Transport: ObjectTransport {
    /// The keys that requests are signed with, within a time.
    public typealias CredentialSource =
        @Sendable (_ time: Duration) async throws -> Credentials.CloudCredentials

    /// Where buckets are that neither their location nor the storage says otherwise of.
    package let region: String
    /// Where requests go and how they are made.
    package let options: Options
    /// What the storage allows.
    public var limits: ObjectLimits { options.limits }

    /// The keys that requests are signed with; others than the storage has refused, where it has.
    typealias RenewingSource =
        @Sendable (_ refused: Credentials.CloudCredentials?, _ deadline: SuspendingClock.Instant) async throws ->
        Credentials.CloudCredentials

    let credentialSource: RenewingSource
    /// Whether other keys can be had where the storage refuses some.
    let renewsCredentials: Bool
    var client: HTTPClient { held.client }
    private let held: HeldClient
    /// What bodies are sent from.
    let buffers = BufferPool()
    let pieceSize = PieceSize()
    /// Kept as it came, for the first request to throw.
    private let endpointOrError: Result<S3Endpoint, ObjectError>

    private struct Learned {
        var regions: [String: String] = [:]
        /// Seconds that the storage's clock is ahead of this machine's.
        var clockOffset: Double = 0
    }

    private let learned = Locked(Learned())

    /// A transport to a region's storage.
    ///
    /// - Parameters:
    ///   - region: Such as `eu-west-1`.
    ///   - credentials: Asked for each request. What it throws ends the request: an `ObjectError` as it is, a
    ///     `CancellationError` as `.cancelled`, anything else as the cause of a `.notPrepared`; `.invalidCredentials`
    ///     where a sign-in would help.
    ///   - options: What is different from the defaults.
    ///   - client: Carries the exchanges; nil for one of the transport's own, which is shut down when the transport is
    ///     released. The caller owns one that is given, and shuts it down after the last use of this transport. Make it
    ///     with `clientConfiguration`: of another one, note that by default redirects are followed and a storage that
    ///     refuses connections is tried until the connect timeout.
    public convenience init(
        region: String, credentials: @escaping CredentialSource, options: Options = Options(),
        client: HTTPClient? = nil
    ) {
        self.init(region: region, options: options, client: client, renews: false) { _, deadline in
            try await credentials(.until(deadline))
        }
    }

    init(
        region: String, options: Options, client: HTTPClient?, renews: Bool = true,
        credentials: @escaping RenewingSource
    ) {
        self.region = region
        credentialSource = credentials
        renewsCredentials = renews
        self.options = options
        held = HeldClient(client, or: Self.clientConfiguration)
        do throws(ObjectError) {
            endpointOrError = .success(try S3Endpoint(options))
        } catch {
            endpointOrError = .failure(error)
        }
    }

    /// The host of the location's bucket; the bucket's name where no request can be sent there.
    public func host(of location: ObjectLocation) -> String {
        do throws(ObjectError) {
            let region = region(of: location.bucket, said: location.region)
            return try endpoint.address(bucket: location.bucket, key: nil, region: region).host
        } catch {
            return location.bucket
        }
    }

    var endpoint: S3Endpoint { get throws(ObjectError) { try endpointOrError.get() } }

    // MARK: - What was learned

    /// The region that the next request of a bucket is signed for.
    func region(of bucket: String, said: String?) -> String {
        learned.withLock { $0.regions[bucket] } ?? said ?? region
    }

    /// Notes where a request of the bucket was taken.
    func learn(region: String, of bucket: String) { learned.withLock { $0.regions[bucket] = region } }

    /// Where a region that was learned fails, the next request goes where the bucket was said to be.
    func forget(region: String, of bucket: String) {
        learned.withLock { learned in
            if learned.regions[bucket] == region { learned.regions[bucket] = nil }
        }
    }

    /// The time of day as the storage has it.
    var signingTime: SigningTime {
        SigningTime(options.wallClock().addingTimeInterval(learned.withLock { $0.clockOffset }))
    }

    /// Takes over the storage's time, in seconds since 1970.
    func learn(serverTime: Int) {
        let offset = Double(serverTime) - options.wallClock().timeIntervalSince1970
        learned.withLock { $0.clockOffset = offset }
    }
}
