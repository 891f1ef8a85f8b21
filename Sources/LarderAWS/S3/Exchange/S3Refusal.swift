import Foundation
import Larder
import LarderHTTP

/// Why an attempt failed, with what the next one could do better.
struct S3Refusal: Error {
    var error: ObjectError
    /// The region that the bucket is said to be in; nil where what is said is no region's name.
    var region: String?
    /// The server's time, in seconds since 1970.
    var serverTime: Int?

    init(_ error: ObjectError) { self.error = error }

    /// What an answer that is no success says, by its XML and, where it has none, by its status.
    init(answer: S3Answer, document: XMLNode? = nil, wallClock: () -> Date = { Date() }) {
        let root = document ?? XMLNode(answer.body)
        let node = root?.name == "Error" ? root : nil
        let serverCode = node?["Code"].flatMap { $0.isEmpty ? nil : $0.asStorageLabel }
        let date = answer.headers.first(name: "Date")
        serverTime = date.flatMap(HTTPDate.secondsSince1970)
        region = [answer.headers.bucketRegion, node?["Region"], Self.region(ofHost: node?["Endpoint"])]
            .compactMap(\.self).first(where: S3Endpoint.isRegion)
        var error = ObjectError(
            S3ErrorCode.code(serverCode, status: answer.status), "", status: answer.status,
            serverCode: serverCode, requestID: answer.headers.requestID ?? node?["RequestId"]?.asStorageLabel,
            hostID: answer.headers.hostID ?? node?["HostId"]?.asStorageLabel,
            retryAfter: answer.headers.first(name: "Retry-After").flatMap {
                RetryAfter.duration($0, serverDate: date, wallClock: wallClock)
            })
        let said = node?["Message"].flatMap { $0.isEmpty ? nil : String($0.prefix(500)) }
        error.message = said ?? "The storage answered with the HTTP status \(answer.status)."
        if error.code == .wrongRegion {
            error.message += " The bucket is in \(region ?? "a region that the storage does not say")."
        }
        self.error = error
    }

    /// The region out of a host such as `bucket.s3.eu-west-1.amazonaws.com` or `bucket.s3-eu-west-1.amazonaws.com`.
    private static func region(ofHost host: String?) -> String? {
        guard let labels = host?.split(separator: "."), let end = labels.firstIndex(of: "amazonaws"), end > 0 else {
            return nil
        }
        let last = labels[end - 1]
        if last.hasPrefix("s3-") { return String(last.dropFirst(3)) }
        return last == "s3" ? "us-east-1" : String(last)
    }
}
