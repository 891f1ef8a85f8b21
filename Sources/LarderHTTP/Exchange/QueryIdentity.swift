import Larder

/// What makes two queries to one endpoint the same exchange.
struct QueryIdentity: Hashable, Sendable {
    // The hash alone would do if it could be trusted to fit its document.
    private let documentHash: String
    private let document: String
    private let operationName: String?
    private let variables: [UInt8]
    private let headers: [GraphQLRequest.Header]

    init(_ request: GraphQLRequest, headers: RequestHeaders) {
        documentHash = request.documentHash
        document = request.document
        operationName = request.operationName
        variables = request.variables
        self.headers = headers.fields
    }
}
