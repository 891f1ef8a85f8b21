public import AsyncHTTPClient
package import Foundation

extension HTTPTransport {
    /// The client configuration this transport is made for: no redirects, gzip and deflate up to the size limit of
    /// `options`, and a server that cannot be reached is an error at once rather than after the connect timeout; where
    /// subscriptions are multipart answers, up to 128 connections to a host.
    public static func clientConfiguration(for options: Options = Options()) -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(
            redirectConfiguration: .disallow,
            decompression: .enabled(limit: .size(max(0, options.maximumAnswerSize)))
        )
        configuration.connectionPool.retryConnectionEstablishment = false
        // Over HTTP/1.1 each subscription keeps a connection; queries must not wait for its end.
        if options.subscriptions.carrier == .multipart {
            configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 128
        }
        // On Apple's systems the client would otherwise wait for a network until the connect timeout.
        configuration.networkFrameworkWaitForConnectivity = false
        configuration.refuseImpossibleStatuses()
        return configuration
    }

    /// Runs `body` with a transport whose client is made for it and shut down when it returns or throws.
    ///
    /// Exchanges that are still under way then are broken off.
    package static func withTransport<Result>(
        to endpoint: URL, options: Options = Options(),
        isolation: isolated (any Actor)? = #isolation,
        _ body: (HTTPTransport) async throws -> Result
    ) async throws -> Result {
        try await HTTPClient.withHTTPClient(configuration: clientConfiguration(for: options)) { client in
            try await body(HTTPTransport(endpoint: endpoint, client: client, options: options))
        }
    }
}
