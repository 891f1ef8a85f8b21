package import AsyncHTTPClient

/// The client of a transport: the program's own, or one that is made for the transport and ends with its last user.
package final class HeldClient: Sendable {
    package let client: HTTPClient
    private let isOwned: Bool

    /// - Parameters:
    ///   - given: The program's, which the program shuts down.
    ///   - configuration: With what a client is made where none is given.
    package init(_ given: HTTPClient?, or configuration: @autoclosure () -> HTTPClient.Configuration) {
        client = given ?? HTTPClient(configuration: configuration())
        isOwned = given == nil
    }

    deinit {
        guard isOwned else { return }
        // The client lives until it has shut down. A failure to close a connection is of no concern to a caller any
        // more.
        client.shutdown { [client] _ in _ = client }
    }
}
