import AsyncHTTPClient
import Larder
import LarderHTTP
import NIOCore
import NIOHTTP1

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What is sent: the shapes of JSON that Cognito's operations take.
enum CognitoValue: Encodable, Sendable, ExpressibleByStringLiteral {
    case text(String)
    case texts([String: String])
    /// `[{"Name": …, "Value": …}]`
    case attributes([String: String])

    init(stringLiteral text: String) { self = .text(text) }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .text(let text): try container.encode(text)
        case .texts(let texts): try container.encode(texts)
        case .attributes(let attributes):
            try container.encode(attributes.sorted { $0.key < $1.key }.map { ["Name": $0.key, "Value": $0.value] })
        }
    }
}

/// One of Cognito's services, in one region.
struct CognitoService: Sendable {
    enum Name: String, Sendable {
        case userPools = "AWSCognitoIdentityProviderService"
        case identityPools = "AWSCognitoIdentityService"
    }

    let name: Name
    let url: String
    private let held: HeldClient
    var client: HTTPClient { held.client }
    let wallClock: @Sendable () -> Date

    /// Bytes of an answer. Tokens have some thousand each.
    private static let maximumAnswerSize = 1 << 20

    init(
        _ name: Name, region: String, endpoint: URL?, _ held: HeldClient, wallClock: @escaping @Sendable () -> Date
    ) {
        self.name = name
        let host = name == .userPools ? "cognito-idp" : "cognito-identity"
        url =
            endpoint?.absoluteString
            ?? "https://\(host).\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
        self.held = held
        self.wallClock = wallClock
    }

    func call(
        _ operation: String, _ body: [String: CognitoValue], deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> CognitoAnswer {
        let request: HTTPClientRequest
        do {
            request = try self.request(operation, body)
        } catch {
            // The encoder's error may quote what was given.
            throw CognitoError(.invalidInput, "What was given cannot be sent as JSON.")
        }
        let answer = try await send(request, deadline: deadline)
        let data = Data(answer.body)
        guard (200..<300).contains(answer.status), answer.kind == nil else { throw fault(in: answer, data) }
        var decoded: CognitoAnswer
        do {
            decoded = try JSONDecoder().decode(CognitoAnswer.self, from: data.isEmpty ? Data("{}".utf8) : data)
        } catch {
            // The decoder's error may quote the answer, which has tokens.
            throw CognitoError(.unusableAnswer, "Cognito's answer to \(operation) is not what that operation answers.")
        }
        guard !decoded.isFault else { throw fault(in: answer, data) }
        decoded.serverTime = answer.serverTime
        return decoded
    }

    private func fault(in answer: Received, _ data: Data) -> CognitoError {
        let fault = try? JSONDecoder().decode(CognitoFault.self, from: data)
        guard let kind = answer.kind ?? fault?.kind else {
            return CognitoError(
                ofStatus: answer.status, "Cognito answered with the HTTP status \(answer.status).",
                retryAfter: answer.retryAfter)
        }
        return CognitoError(
            serverCode: kind, message: fault?.text, status: answer.status, retryAfter: answer.retryAfter)
    }

    func send(_ request: HTTPClientRequest, deadline: SuspendingClock.Instant) async throws(CognitoError) -> Received {
        do throws(TransportError) {
            return try await prepared(by: deadline) { try await exchange(request) }
        } catch { throw CognitoError(error) }
    }

    private func request(_ operation: String, _ body: [String: CognitoValue]) throws -> HTTPClientRequest {
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers = [
            "content-type": "application/x-amz-json-1.1", "x-amz-target": "\(name.rawValue).\(operation)",
            "cache-control": "no-store",
        ]
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(body)))
        return request
    }

    /// An answer, not yet understood.
    struct Received: Sendable {
        var status: Int
        /// The name of the error, as the head has it.
        var kind: String?
        var retryAfter: Duration?
        var serverTime: Date?
        var body: [UInt8]
    }

    /// The client of both services where none is given.
    static func held(_ client: HTTPClient?) -> HeldClient {
        HeldClient(client, or: HTTPTransport.clientConfiguration())
    }

    private func exchange(_ request: HTTPClientRequest) async throws -> Received {
        try request.requireBoundedHead()
        do {
            let response = try await client.execute(request, deadline: .now() + .hours(1))
            guard response.history.count <= 1, !(300..<400).contains(Int(response.status.code)) else {
                throw TransportError(.unusableAnswer, "Cognito's endpoint redirects elsewhere; set the right one.")
            }
            var body: [UInt8] = []
            for try await chunk in response.body {
                guard body.count + chunk.readableBytes <= Self.maximumAnswerSize else {
                    throw TransportError(.unusableAnswer, "Cognito's answer is longer than 1 MiB.")
                }
                body += chunk.readableBytesView
            }
            let date = response.headers.first(name: "Date")
            let kind = response.headers.first(name: "x-amzn-errortype")?.prefix { $0 != ":" }
            return Received(
                status: Int(response.status.code), kind: kind.map { CognitoFault.plain(String($0)) },
                retryAfter: response.headers.first(name: "Retry-After").flatMap {
                    RetryAfter.duration($0, serverDate: date, wallClock: wallClock)
                },
                serverTime: date.flatMap(HTTPDate.secondsSince1970).map {
                    Date(timeIntervalSince1970: TimeInterval($0))
                }, body: body)
        } catch let error as TransportError {
            throw error
        } catch {
            throw TransportError(ofClient: error)
        }
    }
}
