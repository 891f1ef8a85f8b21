import Crypto
import Foundation
import Larder
import LarderAWS
import LarderFiles
import LarderTestSupport
import NIOHTTP1
import Synchronization
import Testing

@Suite("Uploads that take long, and uploads that end badly", .timeLimit(.minutes(10)))
struct LongUploadTests {
    private static func hour(of date: Date) -> Int { Int(date.timeIntervalSince1970) / 3600 }

    /// Takes parts, each of which lasts an hour, with signatures of the last quarter of an hour and this hour's tokens.
    private static func answer(_ request: Received, _ clock: TestClock, _ ending: Reply?) -> Reply {
        let stamp = request.headers.first(name: "x-amz-date") ?? ""
        guard abs(date(stamp).timeIntervalSince(clock.now)) < 900 else {
            return .error(.forbidden, "RequestTimeTooSkewed")
        }
        guard request.headers.first(name: "x-amz-security-token") == "\(hour(of: clock.now))" else {
            return .error(.badRequest, "ExpiredToken")
        }
        switch request.method {
        case .GET where request.target.contains("uploadId="):
            let parts = (1...3).map { number in
                "<Part><PartNumber>\(number)</PartNumber><ETag>\"\(md5(part(number)))\"</ETag></Part>"
            }
            return .xml(.ok, "<ListPartsResult><IsTruncated>false</IsTruncated>\(parts.joined())</ListPartsResult>")
        case .GET:
            return .xml(
                .ok, "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")
        case .PUT:
            guard let number = request.target.firstMatch(of: /partNumber=(\d+)/).flatMap({ Int($0.1) }) else {
                return .error(.badRequest, "InvalidRequest")
            }
            clock.advance(by: .seconds(3600))
            let part = part(number)
            return .stored(crc32c: checksumText(part), etag: "\"\(md5(part))\"")
        case .POST where request.target.contains("uploadId="):
            if let ending { return ending }
            let tags = (1...3).flatMap { Array(Insecure.MD5.hash(data: part($0))) }
            return .xml(
                .ok, "<CompleteMultipartUploadResult><ETag>\"\(md5(tags))-3\"</ETag></CompleteMultipartUploadResult>")
        case .POST:
            return .xml(
                .ok, "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
        case .DELETE: return Reply(status: .noContent)
        default: return .error(.notFound, "NoSuchKey")
        }
    }

    private static func part(_ number: Int) -> ArraySlice<UInt8> {
        TransferBench.bytes[(number - 1) * 1024..<min(number * 1024, TransferBench.bytes.count)]
    }

    private static func md5(_ bytes: some Sequence<UInt8>) -> String {
        hexadecimal(Insecure.MD5.hash(data: Array(bytes)))
    }

    private static func date(_ stamp: String) -> Date {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "yyyyMMdd'T'HHmmss'Z'"
        return format.date(from: stamp) ?? .distantPast
    }

    private func upload(
        endingWith ending: Reply?, _ body: (TransferBench, Transfer, ScriptedStorage) async throws -> Void
    ) async throws {
        let clock = TestClock()
        let credentials: S3Transport.CredentialSource = { _ in
            Credentials.CloudCredentials(
                accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "secret",
                sessionToken: "\(Self.hour(of: clock.now))", expires: nil)
        }
        try await TransferBench.run { bench in
            let configure: (inout S3Transport.Options) -> Void = {
                $0.wallClock = { clock.now }
                $0.limits.smallestPart = 1024
            }
            let script: ScriptedStorage.Script = { Self.answer($0, clock, ending) }
            try await ScriptedStorage.run(script, configure: configure, credentials: credentials) { server, storage in
                let upload = try await bench.app.transfers.upload(bench.source, to: .somewhere)
                var options = bench.options
                options.multipartThreshold = 1024
                options.connectionsPerHost = 1
                try await TransferRunner(bench.app, storage: storage, options: options).drain()
                try await body(bench, upload, server)
            }
        }
    }

    @Test("Uploads over an hour do not fail because the signature expired: each request has its own, and its own token")
    func expiredSignatures() async throws {
        try await upload(endingWith: nil) { _, upload, server in
            try await upload.finished(within: .zero)
            #expect(try upload.status().attempts == 1)
            let parts = server.requests.filter { $0.method == .PUT }
            #expect(Set(parts.map { $0.headers.first(name: "x-amz-security-token") }).count == 3)
        }
    }

    @Test(
        "Finishing fails within an answer that says success, and the completion says so",
        arguments: [
            ("AccessDenied", ObjectError.Code.accessDenied), ("InternalError", .serverFault),
            ("InvalidPart", .incomplete),
        ])
    func failedEnd(serverCode: String, code: ObjectError.Code) async throws {
        let ending = Reply.xml(.ok, " \n<Error><Code>\(serverCode)</Code><Message>No.</Message></Error>")
        try await upload(endingWith: ending) { bench, upload, server in
            try await bench.expectFailed(upload, code)
            #expect(server.requests.contains { $0.method == .DELETE })
        }
    }
}
