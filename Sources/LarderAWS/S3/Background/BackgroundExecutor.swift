public import Foundation
public import Larder

/// Makes HTTP requests that carry whole files, outside of this program: they go on while the program is suspended or
/// dead. `URLSessionExecutor` is one on Apple's systems; tests have another process.
public protocol BackgroundExecutor: Sendable {
    /// The requests that are under way, or have ended and were not forgotten by `end`.
    func known() async throws(ObjectError) -> Set<UUID>

    /// Takes a request over. Once this has returned, the request is made whatever becomes of the program.
    func begin(_ request: FileRequest, as id: UUID) async throws(ObjectError)

    /// Waits for the response to a request.
    ///
    /// - Returns: Nil where nothing is known of the request.
    /// - Throws: Why there is no response: `.interrupted`, `.unreachable`, `.timedOut`; `.cancelled` where the calling
    ///   task was cancelled, and the request goes on.
    func response(to id: UUID) async throws(ObjectError) -> FileResponse?

    /// Breaks a request off where it is under way, and forgets it.
    func end(_ id: UUID) async throws(ObjectError)
}

/// A request that sends or receives a file, and needs no more of its program.
public struct FileRequest: Sendable, Hashable, Codable {
    /// Where it goes, with its signature.
    public var url: URL
    /// `PUT` sends the file, `GET` receives it.
    public var method: String
    /// All that are to be sent beside the ones that the HTTP client makes itself: host and length.
    public var headers: [String: String]
    /// Of `PUT`: whose bytes are the body. Of `GET`: where the body of a response of 200 is put, in one step and before
    /// the response is told; what is there is replaced.
    public var file: URL

    /// A request of these parts.
    public init(url: URL, method: String, headers: [String: String], file: URL) {
        (self.url, self.method, self.headers, self.file) = (url, method, headers, file)
    }
}

/// What a server has answered.
public struct FileResponse: Sendable, Hashable, Codable {
    /// The HTTP status.
    public var status: Int
    /// All headers.
    public var headers: [String: String]
    /// Small; what is longer than 64 KiB, and what was put into a file, is left out.
    public var body: [UInt8]

    /// A response of these parts.
    public init(status: Int, headers: [String: String], body: [UInt8]) {
        (self.status, self.headers, self.body) = (status, headers, body)
    }
}
