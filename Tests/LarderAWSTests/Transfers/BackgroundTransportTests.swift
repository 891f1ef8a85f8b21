import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderAWS

/// Notes what it is handed, and answers all of it alike.
private final class NotingExecutor: BackgroundExecutor {
    private let requests = Mutex<[UUID: FileRequest]>([:])
    private let response: FileResponse?

    init(_ response: FileResponse? = nil) { self.response = response }

    func request(_ id: UUID) -> FileRequest? { requests.withLock { $0[id] } }

    func known() async throws(ObjectError) -> Set<UUID> { requests.withLock { Set($0.keys) } }
    func begin(_ request: FileRequest, as id: UUID) async throws(ObjectError) {
        requests.withLock { $0[id] = request }
    }
    func response(to id: UUID) async throws(ObjectError) -> FileResponse? { response }
    func end(_ id: UUID) async throws(ObjectError) { requests.withLock { $0[id] = nil } }
}

@Suite("Uploads to S3 outside of the program", .timeLimit(.minutes(10)))
struct BackgroundTransportTests {
    @Test(
        "A file is handed over with a request that is signed for a week, with its attributes and its checksum",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))
    func signed() async throws {
        try await withStorage { server, storage in
            let executor = NotingExecutor()
            let background = S3BackgroundTransport(storage, executor: executor)
            let (id, file) = (UUID(), URL(filePath: "/tmp/file"))
            let attributes = ObjectAttributes(contentType: "text/plain", metadata: ["Made-By": "a test"])
            try await background.upload(file, as: id, to: server.location(), attributes, crc32c: 0xE306_9283)
            #expect(try await background.known() == [id])
            let request = try #require(executor.request(id))
            #expect(request.method == "PUT" && request.file == file)
            #expect(
                request.headers == [
                    "content-type": "text/plain", "x-amz-meta-made-by": "a test", "x-amz-checksum-crc32c": "4waSgw==",
                ])
            let query = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            let items = Dictionary(query.map { ($0.name, $0.value ?? "") }) { $1 }
            #expect(items["X-Amz-SignedHeaders"] == "content-type;host;x-amz-checksum-crc32c;x-amz-meta-made-by")
            #expect(items["X-Amz-Expires"] == "604800")
            #expect(items["X-Amz-Signature"]?.count == 64)
            try await background.end(id)
            #expect(try await background.known() == [])
        }
    }

    @Test(
        "A download is handed over with a request for just the bytes that are meant",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"),
        arguments: [("\"abc\"", ["if-match": "\"abc\""]), ("W/\"abc\"", [:])])
    func download(etag: String, headers: [String: String]) async throws {
        try await withStorage { server, storage in
            let executor = NotingExecutor()
            let background = S3BackgroundTransport(storage, executor: executor)
            let (id, file) = (UUID(), URL(filePath: "/tmp/file"))
            try await background.download(server.location(), etag: etag, as: id, to: file)
            let request = try #require(executor.request(id))
            #expect(request.method == "GET" && request.file == file && request.headers == headers)
            let query = URLComponents(url: request.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            let signed = query.first { $0.name == "X-Amz-SignedHeaders" }?.value
            #expect(signed == (["host"] + headers.keys).sorted().joined(separator: ";"))
        }
    }

    @Test(
        "Whether the object is there does not matter; where the storage cannot tell, nothing is handed over",
        arguments: [(200, true), (403, true), (404, true), (500, false), (503, false)])
    func asked(status: Int, isHandedOver: Bool) async throws {
        try await ScriptedStorage.run { _ in
            Reply(status: .init(statusCode: status), headers: ["ETag": "\"abc\""])
        } _: { _, storage in
            let (executor, id) = (NotingExecutor(), UUID())
            let background = S3BackgroundTransport(storage, executor: executor)
            do throws(ObjectError) {
                try await background.upload(
                    URL(filePath: "/tmp/file"), as: id, to: .somewhere, ObjectAttributes(), crc32c: 0)
                #expect(isHandedOver)
            } catch { #expect(!isHandedOver && error.status == status) }
            #expect((executor.request(id) != nil) == isHandedOver)
        }
    }

    /// What an upload ends with that is answered so.
    private func outcome(_ status: Int, _ headers: [String: String], _ body: String) async throws -> StoredObject? {
        try await S3Transport.withTransport(
            region: "eu-west-1",
            credentials: { _ in .init(accessKeyID: "key", secretAccessKey: "secret", expires: nil) }
        ) { storage in
            let response = FileResponse(status: status, headers: headers, body: Array(body.utf8))
            let executor = NotingExecutor(response)
            return try await S3BackgroundTransport(storage, executor: executor).outcome(of: UUID())
        }
    }

    @Test("What the storage answers is the object that it has")
    func answered() async throws {
        let headers = ["Etag": "\"abc\"", "X-Amz-Checksum-Crc32c": "4waSgw==", "X-Amz-Version-Id": "v1"]
        let object = try await outcome(200, headers, "")
        #expect(object?.etag == "\"abc\"" && object?.crc32c == 0xE306_9283 && object?.version == "v1")
    }

    @Test(
        "What the storage refuses has its code; a signature whose time was over is made anew",
        arguments: [
            ("AccessDenied", "Access Denied", ObjectError.Code.accessDenied),
            ("AccessDenied", "Request has expired", .interrupted),
            ("BadDigest", "The CRC32C you specified did not match", .checksum),
            ("ExpiredToken", "The provided token has expired.", .expiredCredentials),
        ])
    func refused(name: String, message: String, code: ObjectError.Code) async throws {
        let body = "<Error><Code>\(name)</Code><Message>\(message)</Message></Error>"
        let error = await #expect(throws: ObjectError.self) { try await outcome(403, [:], body) }
        #expect(error?.code == code)
        #expect(error?.serverCode == name)
    }

    @Test("Nothing is told of a request that the executor does not know")
    func unknown() async throws {
        try await S3Transport.withTransport(region: "eu-west-1", credentials: { _ in .test }) { storage in
            let background = S3BackgroundTransport(storage, executor: NotingExecutor())
            let outcome = try await background.outcome(of: UUID())
            #expect(outcome == nil)
        }
    }

    @Test("An answer of 200 whose body is an error is a failure, and no object")
    func errorAfterSuccess() async throws {
        let body = "<Error><Code>InternalError</Code><Message>We encountered an internal error</Message></Error>"
        let error = await #expect(throws: ObjectError.self) { try await outcome(200, ["Etag": "\"abc\""], body) }
        #expect(error?.code == .serverFault && error?.serverCode == "InternalError")
    }
}
