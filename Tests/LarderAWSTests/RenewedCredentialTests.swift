import Larder
import Synchronization
import Testing

@testable import LarderAWS

@Suite("Credentials that a storage refuses are renewed once", .timeLimit(.minutes(10)))
struct RenewedCredentialTests {
    private static func credentials(_ name: String) -> Credentials.CloudCredentials {
        Credentials.CloudCredentials(
            identityID: nil, accessKeyID: name, secretAccessKey: "secret", sessionToken: nil, expires: nil)
    }

    /// Puts an object with credentials that can be renewed.
    ///
    /// - Parameter refusals: So many requests are refused, under this name.
    /// - Returns: The key ids that the requests were signed with, what the source was told was refused, and the error.
    private func put(
        refusals: Int, as name: String
    ) async throws -> (signed: [String], refused: [String?], error: ObjectError?) {
        try await ScriptedStorage.run { request in
            request.number < refusals ? .error(.badRequest, name) : .stored()
        } _: { storage, transport in
            let asked = Mutex<[String?]>([])
            let renewing = S3Transport(region: transport.region, options: transport.options, client: transport.client) {
                refused, _ in
                asked.withLock { $0.append(refused?.accessKeyID) }
                return Self.credentials(refused == nil ? "OLD" : "NEW")
            }
            var failure: ObjectError?
            do throws(ObjectError) {
                _ = try await renewing.put(
                    ObjectBody(Array("soup".utf8)), to: .somewhere, ObjectAttributes(), idle: .ample)
            } catch { failure = error }
            let signed = storage.requests.map { request in
                let text = request.headers.first(name: "authorization") ?? ""
                return text.contains("Credential=OLD/") ? "OLD" : text.contains("Credential=NEW/") ? "NEW" : text
            }
            return (signed, asked.withLock { $0 }, failure)
        }
    }

    @Test(
        "Others are asked for, and the request is made once more",
        arguments: ["ExpiredToken", "InvalidAccessKeyId", "InvalidToken"])
    func renewed(name: String) async throws {
        let result = try await put(refusals: 1, as: name)
        #expect(result.signed == ["OLD", "NEW"])
        #expect(result.refused == [nil, "OLD"])
        #expect(result.error == nil)
    }

    @Test("Where those are refused as well, that is the error")
    func refusedAgain() async throws {
        let result = try await put(refusals: 3, as: "ExpiredToken")
        #expect(result.signed == ["OLD", "NEW"])
        #expect(result.error?.code == .expiredCredentials)
    }

    @Test("What the credentials are not the reason for is no reason for others")
    func otherRefusal() async throws {
        let result = try await put(refusals: 1, as: "SignatureDoesNotMatch")
        #expect(result.signed == ["OLD"])
        #expect(result.error?.code == .invalidCredentials)
    }

    @Test("A transport with the program's own source of credentials does not repeat a request when they have ended")
    func ownSource() async throws {
        try await ScriptedStorage.run { _ in
            .error(.badRequest, "ExpiredToken")
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.put(
                    ObjectBody(Array("soup".utf8)), to: .somewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(error.code == .expiredCredentials)
            #expect(storage.requests.count == 1)
        }
    }

    @Test("Where no user is signed in the credentials are invalid, with what the session says as the cause")
    func notSignedIn() async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } credentials: { _ in
            throw LarderError(.notSignedIn, "No user is signed in.")
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.put(
                    ObjectBody(Array("soup".utf8)), to: .somewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(error.code == .invalidCredentials)
            #expect((error.cause as? LarderError)?.code == .notSignedIn)
            #expect(storage.requests.isEmpty)
        }
    }

    @Test("The program's own source of credentials is told how much time there is for them")
    func timeForCredentials() async throws {
        let times = Mutex<[Duration]>([])
        try await S3Transport.withTransport(
            region: "eu-west-1",
            credentials: { time in
                times.withLock { $0.append(time) }
                return .test
            }
        ) { transport in
            _ = try await transport.presignedURL(.get, .somewhere, expiresAfter: .seconds(60), within: .seconds(40))
        }
        let time = try #require(times.withLock { $0.first })
        #expect(time > .zero && time <= .seconds(40))
    }
}
