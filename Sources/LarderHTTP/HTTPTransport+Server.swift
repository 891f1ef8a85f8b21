public import Foundation
public import Larder

extension GraphQLTransport where Self == HTTPTransport {
    /// A GraphQL server, reached over HTTP with a client of the transport's own.
    ///
    /// ```swift
    /// let app = try store.partition(server: .http(url))
    /// ```
    ///
    /// The client is shut down when the transport is released, after its last exchange.
    public static func http(_ endpoint: URL, options: HTTPTransport.Options = .init()) -> HTTPTransport {
        HTTPTransport(endpoint: endpoint, options: options)
    }
}
