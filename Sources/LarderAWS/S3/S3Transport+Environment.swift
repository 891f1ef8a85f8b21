public import AsyncHTTPClient
public import Larder

extension S3Transport {
    /// A transport to an environment's bucket, with the cloud's credentials of a session's user or guest. They are
    /// refreshed when they end, and once where the storage refuses them. No request waits for a sign-in.
    ///
    /// - Parameters:
    ///   - session: Asked for each request, since a session is over when its partition is parked:
    ///     `session: try app.session`.
    ///   - client: As of `init(region:credentials:options:client:)`.
    /// - Throws: `.environment` where the environment has no bucket.
    public convenience init(
        environment: BackendEnvironment, session: @autoclosure @escaping @Sendable () throws -> Session,
        options: Options = Options(), client: HTTPClient? = nil
    ) throws(LarderError) {
        guard let bucket = environment.bucket else {
            throw LarderError(.environment, "Environment \(environment.name): it has no bucket; configure one")
        }
        self.init(region: bucket.region, options: options, client: client) { refused, deadline in
            try await session().cloudCredentials(within: .until(deadline), refused: refused)
        }
    }
}
