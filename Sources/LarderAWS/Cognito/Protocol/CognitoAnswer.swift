#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What Cognito's operations answer: each of them some of this.
struct CognitoAnswer: Decodable, Sendable {
    struct Tokens: Decodable, Sendable {
        struct Device: Decodable, Sendable {
            var DeviceKey: String?
            var DeviceGroupKey: String?
        }

        var IdToken: String?
        var AccessToken: String?
        var RefreshToken: String?
        var ExpiresIn: Double?
        var NewDeviceMetadata: Device?
    }

    struct Delivery: Decodable, Sendable {
        var AttributeName: String?
        var DeliveryMedium: String?
        var Destination: String?
    }

    struct Attribute: Decodable, Sendable {
        var Name: String
        var Value: String?
    }

    struct Keys: Decodable, Sendable {
        var AccessKeyId: String?
        var SecretKey: String?
        var SessionToken: String?
        /// Seconds since 1970, by the server's clock.
        var Expiration: Double?
    }

    var AuthenticationResult: Tokens?
    var ChallengeName: String?
    var ChallengeParameters: [String: String]?
    var AvailableChallenges: [String]?
    var Session: String?
    var CodeDeliveryDetails: Delivery?
    var UserConfirmed: Bool?
    var UserConfirmationNecessary: Bool?
    var UserSub: String?
    var SecretCode: String?
    var Status: String?
    var Username: String?
    var UserAttributes: [Attribute]?
    var IdentityId: String?
    var Credentials: Keys?
    /// The server's clock, where it says so.
    var serverTime: Date?
    /// The kind of an error, which no answer has.
    private var __type: String?

    /// Whether it is an error, whatever its status of HTTP says.
    var isFault: Bool { __type?.hasSuffix("Exception") ?? false }

    private enum CodingKeys: CodingKey {
        case __type
        case AuthenticationResult, ChallengeName, ChallengeParameters, AvailableChallenges, Session
        case CodeDeliveryDetails, UserConfirmed, UserConfirmationNecessary, UserSub, SecretCode, Status, Username,
            UserAttributes, IdentityId
        case Credentials
    }
}

/// What Cognito says of an error.
struct CognitoFault: Decodable {
    private var __type: String?
    private var message: String?
    private var Message: String?

    var kind: String? { __type.map(Self.plain) }
    var text: String? { message ?? Message }

    /// A name without what stands before it: `com.amazonaws…#NotAuthorizedException`.
    static func plain(_ name: String) -> String {
        String((name.split(separator: "#").last ?? "").prefix(100))
    }
}
