/// What a mutation says and what it does here, none of which decides when it is sent.
///
/// `variables`, `optimisticResponse` and `listEdits` are JSON in UTF-8 and kept byte by byte, but for temporary ids,
/// which are replaced when the server has given the real ones.
package struct MutationContent: Sendable, Hashable {
    /// The GraphQL document.
    package var document: String
    /// Which of the document's operations, where it has several.
    package var operationName: String?
    /// A JSON object.
    package var variables: [UInt8]
    /// What the server is expected to answer: a JSON object of the operation's shape.
    package var optimisticResponse: [UInt8]?
    /// What it does to lists, as data.
    package var listEdits: [UInt8]?
    /// What it does to lists, by the name of a registered updater.
    package var updater: String?
    /// Who decides on a conflict.
    package var resolver: String?
    /// The name of the query that tells whether it took effect, where an attempt's outcome is unknown.
    package var checkQuery: String?

    package init(
        document: String, operationName: String? = nil, variables: [UInt8] = Array("{}".utf8),
        optimisticResponse: [UInt8]? = nil, listEdits: [UInt8]? = nil, updater: String? = nil,
        resolver: String? = nil, checkQuery: String? = nil
    ) {
        self.document = document
        self.operationName = operationName
        self.variables = variables
        self.optimisticResponse = optimisticResponse
        self.listEdits = listEdits
        self.updater = updater
        self.resolver = resolver
        self.checkQuery = checkQuery
    }
}
