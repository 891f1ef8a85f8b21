import Larder
import NIOHTTP1

/// The whole answer to a request that carries no object back.
struct S3Answer: Sendable {
    var status: Int
    var headers: HTTPHeaders
    var body: [UInt8]

    /// The body as XML whose root is the result of an operation. What follows its name is not the same everywhere.
    ///
    /// S3 may say 200 before it knows: the root is an error's then, which is thrown.
    func document(_ operation: String) throws(S3Refusal) -> XMLNode {
        guard let node = XMLNode(body) else {
            throw S3Refusal(unusable("The answer is not the XML that was expected (\(operation))."))
        }
        try requireSuccess(node)
        guard node.name.hasPrefix(operation) else {
            throw S3Refusal(
                unusable("The answer is <\(node.name.prefix(80))> where \(operation)'s result was expected."))
        }
        return node
    }

    /// Refuses a success whose body is an error. An answer without a body is a success.
    func requireSuccess() throws(S3Refusal) {
        if !body.isEmpty, let node = XMLNode(body) { try requireSuccess(node) }
    }

    private func requireSuccess(_ node: XMLNode) throws(S3Refusal) {
        if node.name == "Error" { throw S3Refusal(answer: self, document: node) }
    }

    /// An error for an answer that cannot be understood.
    func unusable(_ message: String) -> ObjectError {
        ObjectError(
            .unusableAnswer, message, status: status, requestID: headers.requestID, hostID: headers.hostID)
    }
}

extension HTTPHeaders {
    var requestID: String? { first(name: "x-amz-request-id")?.asStorageLabel }
    var hostID: String? { first(name: "x-amz-id-2")?.asStorageLabel }
    /// The region of the bucket that was asked, which S3 says when it was not asked there.
    var bucketRegion: String? { first(name: "x-amz-bucket-region") }
}
