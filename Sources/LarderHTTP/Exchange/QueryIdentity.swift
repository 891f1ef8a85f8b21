import Larder

/// What makes two queries to one endpoint the same exchange.
struct QueryIdentity: Hashable, Sendable {
    // The hash alone would do if it could be trusted to fit its document.
    private let documentHash: String
    private let document: String
    private let operationName: String?
    private let variables: [UInt8]
    private let headers: [GraphQLRequest.Header]
    private let signer: String?
    /// How many mutations had ended, and subscriptions begun, when the query began: an answer that is older than one is
    /// not given to a caller that asks after it.
    private let changeCount: Int

    init(_ request: GraphQLRequest, headers: RequestHeaders, signer: RequestSigner?, changeCount: Int) {
        documentHash = request.documentHash
        document = request.document
        operationName = request.operationName
        variables = request.variables
        self.headers = headers.fields
        self.signer = signer?.identity
        self.changeCount = changeCount
    }
}
