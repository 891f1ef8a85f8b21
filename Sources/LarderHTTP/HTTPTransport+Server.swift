import AsyncHTTPClient
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
        HTTPTransport(endpoint: endpoint, owning: OwnedClient(options), options: options)
    }
}

/// A client that ends with its last user.
package final class OwnedClient: Sendable {
    let client: HTTPClient

    package init(_ options: HTTPTransport.Options) {
        client = HTTPClient(configuration: HTTPTransport.clientConfiguration(for: options))
    }

    // The client lives until it has shut down. A failure to close a connection is of no concern to a caller any more.
    deinit { client.shutdown { [client] _ in _ = client } }
}
