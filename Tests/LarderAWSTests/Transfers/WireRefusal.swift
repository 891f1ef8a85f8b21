import Foundation

/// What a storage says that refuses a request.
struct WireRefusal: Sendable {
    var status: String
    var code: String

    static let slowDown = WireRefusal(status: "503 Slow Down", code: "SlowDown")
    static let internalError = WireRefusal(status: "500 Internal Server Error", code: "InternalError")
    static let accessDenied = WireRefusal(status: "403 Forbidden", code: "AccessDenied")
    static let expiredToken = WireRefusal(status: "400 Bad Request", code: "ExpiredToken")
    static let forbiddenToken = WireRefusal(status: "403 Forbidden", code: "ExpiredToken")
    static let skewedTime = WireRefusal(status: "403 Forbidden", code: "RequestTimeTooSkewed")

    static let all = [slowDown, internalError, accessDenied, expiredToken, forbiddenToken, skewedTime]

    /// As it goes over the wire; that to a HEAD has no body.
    func text(hasBody: Bool) -> String {
        let body = "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>for a test</Message></Error>"
        return "HTTP/1.1 \(status)\r\nDate: \(Self.now())\r\nContent-Type: application/xml\r\nConnection: close\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n" + (hasBody ? body : "")
    }

    private static func now() -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: Date())
    }
}
