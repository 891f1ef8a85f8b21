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
}
