import NIOHTTP1

/// What the scripted server does with one request.
struct Reply: Sendable {
    enum Ending: Sendable {
        /// The whole body, and the end of the message.
        case complete
        /// The connection is closed after what was written.
        case cut
        /// Nothing more comes, and the connection stays open.
        case hang
    }

    var status: HTTPResponseStatus = .ok
    var headers: HTTPHeaders = ["Content-Type": "application/json"]
    var body: [UInt8] = []
    var ending: Ending = .complete
    /// Whether even the head is held back; for `cut` and `hang`.
    var isSilent = false
    /// The reply is written when this opens.
    var gate: Gate?

    static func json(
        _ body: String, status: HTTPResponseStatus = .ok, type: String? = "application/json",
        headers: HTTPHeaders = [:]
    ) -> Reply {
        var all = headers
        if let type { all.add(name: "Content-Type", value: type) }
        return Reply(status: status, headers: all, body: Array(body.utf8))
    }

    /// A subscription's answer with one part, after which its boundary `--b` says whether another may follow.
    static func multipart(
        _ part: String = "{}", then boundary: String = "--b\r\n", ending: Ending = .complete
    ) -> Reply {
        Reply(
            headers: ["Content-Type": #"multipart/mixed;boundary="b";subscriptionSpec=1.0"#],
            body: Array("--b\r\nContent-Type: application/json\r\n\r\n\(part)\r\n\(boundary)".utf8), ending: ending)
    }

    /// Never a byte of an answer.
    static let hang = Reply(ending: .hang, isSilent: true)
    /// The connection closed instead of an answer.
    static let cut = Reply(ending: .cut, isSilent: true)

    func gated(_ gate: Gate) -> Reply {
        var reply = self
        reply.gate = gate
        return reply
    }
}
