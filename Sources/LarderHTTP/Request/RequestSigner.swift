package import Larder

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// Proves who sends a request by headers that depend on all of it, such as a signature.
package struct RequestSigner: Sendable {
    /// Whose proof it is: requests of two signers are two exchanges.
    package var identity: String
    /// The headers to add to a POST to this URL, with these headers and this body.
    package var headers: @Sendable (URL, [GraphQLRequest.Header], [UInt8]) -> [GraphQLRequest.Header]
    /// Told the field `Date` of each answer.
    package var heard: @Sendable (_ date: String?) -> Void

    package init(
        identity: String, heard: @escaping @Sendable (_ date: String?) -> Void = { _ in },
        headers: @escaping @Sendable (URL, [GraphQLRequest.Header], [UInt8]) -> [GraphQLRequest.Header]
    ) {
        self.identity = identity
        self.heard = heard
        self.headers = headers
    }
}
