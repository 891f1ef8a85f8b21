public import AsyncHTTPClient
import Larder
import LarderHTTP

extension S3Transport {
    /// The client configuration this transport is made for: no redirects, nothing decompressed, and a storage that
    /// cannot be reached is an error at once rather than after the connect timeout.
    public static var clientConfiguration: HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow, decompression: .disabled)
        configuration.connectionPool.retryConnectionEstablishment = false
        // On Apple's systems the client would otherwise wait for a network until the connect timeout.
        configuration.networkFrameworkWaitForConnectivity = false
        // The caller counts connections. One that waited here for its turn would count as idle.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 128
        // Parts that are sent side by side get connections of their own.
        configuration.httpVersion = .http1Only
        configuration.refuseImpossibleStatuses()
        return configuration
    }

    /// Runs `body` with a transport whose client is made for it and shut down when it returns or throws.
    ///
    /// Exchanges that are still under way then are broken off.
    package static func withTransport<Result>(
        region: String, credentials: @escaping CredentialSource, options: Options = Options(),
        isolation: isolated (any Actor)? = #isolation, _ body: (S3Transport) async throws -> Result
    ) async throws -> Result {
        try await HTTPClient.withHTTPClient(configuration: clientConfiguration) { client in
            try await body(S3Transport(region: region, credentials: credentials, options: options, client: client))
        }
    }
}
