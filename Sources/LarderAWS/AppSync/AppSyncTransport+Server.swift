public import Foundation
public import Larder
public import LarderHTTP

extension GraphQLTransport where Self == AppSyncTransport {
    /// An AppSync API, reached with a client of the transport's own, which is shut down when the transport is released.
    ///
    /// ```swift
    /// let app = try store.partition(server: .appSync(url, authorization: .apiKey(key)))
    /// ```
    public static func appSync(
        _ endpoint: URL, authorization: AppSyncAuthorization, options: HTTPTransport.Options = .init()
    ) -> AppSyncTransport {
        AppSyncTransport(endpoint: endpoint, authorization: authorization, options: options)
    }

    /// An environment's AppSync API, which is told who asks as the environment says, with a client as above.
    ///
    /// ```swift
    /// let app = try store.partition(of: environment)
    /// let online = try app.with(server: .appSync(environment: environment, session: try app.session))
    /// ```
    ///
    /// - Parameters:
    ///   - environment: The backend, with its API.
    ///   - session: Of the partition that asks; taken with each request.
    /// - Throws: As `AppSyncTransport.init(environment:session:authorization:tokens:client:options:)`, which also takes
    ///   another authorization than the environment's.
    public static func appSync(
        environment: BackendEnvironment, session: @autoclosure @escaping @Sendable () throws -> Session,
        options: HTTPTransport.Options = .init()
    ) throws(LarderError) -> AppSyncTransport {
        try AppSyncTransport(environment: environment, session: try session(), options: options)
    }
}
