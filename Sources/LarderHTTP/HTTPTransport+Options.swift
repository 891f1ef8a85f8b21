package import Foundation
public import Larder

extension HTTPTransport {
    /// How operations are sent.
    public struct Options: Sendable {
        /// Which requests go by which HTTP method.
        public enum Method: Sendable, Hashable {
            /// Everything by POST with a JSON body.
            case post
            /// Queries by GET, so that caches on the way can answer them; mutations, and queries whose URL would be
            /// longer than `maximumURLLength`, by POST.
            case getForQueries
        }

        /// Whether a document is sent as its text or as its hash.
        public enum PersistedQueries: Sendable, Hashable {
            /// The document's text with every request.
            case off
            /// Queries are sent by the hash of their document; where the server does not know it yet
            /// (`PersistedQueryNotFound`), once more with hash and text. A server that answers
            /// `PersistedQueryNotSupported` gets the text from then on. Mutations are sent with their text.
            case automatic
            /// Every query and mutation by hash alone. The server holds the documents; one it does not know is its error.
            /// Subscriptions are sent with their text.
            case trustedDocuments
        }

        /// Which requests go by GET.
        public var method: Method = .post
        /// Whether documents are sent by their hash.
        public var persistedQueries: PersistedQueries = .off

        /// How the server is told that a mutation is a repeat; nil where it cannot be told. Queued mutations carry
        /// their key so, and one whose answer was lost is sent again only where this is set.
        public var idempotency: Idempotency?

        /// What the server says before it acts on a mutation, beyond what every server says so.
        public var refusals = ServerRefusals()

        /// Headers of every request. A header of the same name (in any case) from `headersForRequest` replaces
        /// them, and one of the request itself replaces both.
        ///
        /// `Content-Type` and `Accept` can be replaced too. Headers that frame the message (`Content-Length`,
        /// `Transfer-Encoding`) are the client's and refused with `.unusableRequest`.
        public var headers: [GraphQLRequest.Header] = []

        /// Supplies headers that change, such as the authorization; called for each `send`, within its deadline. A
        /// request waits for it: ask `Session.userPoolTokens`, which ends at once where no user is signed in, and not
        /// `Session.credentials`, which waits for a sign-in.
        ///
        /// What it throws ends the request: a `TransportError` as it is, a `CancellationError` of a cancelled task as
        /// `.cancelled`, what a session throws as `.notSignedIn` and the like, everything else as the cause of a
        /// `.notPrepared`.
        public var headersForRequest: (@Sendable (GraphQLRequest) async throws -> [GraphQLRequest.Header])?

        /// Bytes of a body, decompressed, above which an answer is given up with `.unusableAnswer`, or `.status` if
        /// its status is not 2xx: 64 MiB, and 8 MiB on a phone.
        public var maximumAnswerSize = GraphQLAnswer.defaultMaximumSize

        /// Bytes of a URL above which a query goes by POST although GET was asked for.
        package var maximumURLLength = 8_000

        /// How subscriptions are carried.
        public var subscriptions = SubscriptionOptions()

        /// Reads the time of day, against which a date in `Retry-After` is held where the server sent no `Date`.
        package var wallClock: @Sendable () -> Date = { Date() }

        /// POST, the whole document every time, no headers of its own, and answers of up to 64 MiB.
        public init() {}
    }
}
