import NIOHTTP1

/// A request to S3 before it has an address, a time and a signature.
struct S3Request: Sendable {
    var method: HTTPMethod
    var bucket: String
    /// Nil for a request of the bucket itself.
    var key: String?
    /// The bucket's region as the caller knows it.
    var region: String?
    var query: [(name: String, value: String)] = []
    /// Signed like the headers that are added: host, time, payload, session.
    var headers: [(name: String, value: String)] = []
    /// What is sent, where that is no object's bytes.
    var content: [UInt8] = []

    init(_ method: HTTPMethod, bucket: String, key: String?, region: String?) {
        self.method = method
        self.bucket = bucket
        self.key = key
        self.region = region
    }
}
