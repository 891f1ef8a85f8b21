import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

/// What a sign-in sends, and what is made of the challenges that come back.
@Suite("Challenges of a sign-in", .timeLimit(.minutes(5)))
struct ChallengeTests {
    private typealias Script = CognitoScript

    @Test(
        "Each way to begin sends what it needs, and no password that it does not need",
        arguments: [
            (CognitoUserPool.Flow.password, "word" as String?, "USER_PASSWORD_AUTH", ["PASSWORD": "word"]),
            (.custom, nil, "CUSTOM_AUTH", [:]), (.custom, "word", "CUSTOM_AUTH", [:]),
            (.choice(), "word", "USER_AUTH", [:]),
            (.choice(preferred: .emailCode), nil, "USER_AUTH", ["PREFERRED_CHALLENGE": "EMAIL_OTP"]),
            (
                .choice(preferred: .password), "word", "USER_AUTH",
                ["PREFERRED_CHALLENGE": "PASSWORD", "PASSWORD": "word"]
            ),
        ])
    func begins(
        _ flow: CognitoUserPool.Flow, _ password: String?, _ name: String, _ parameters: [String: String]
    ) async throws {
        try await Script.run(["InitiateAuth": try Script.result()]) { (script) async throws in
            let tokens = try await script.pool().signIn("ann", password: password, flow: flow, within: ample).tokens
            #expect(tokens.refreshToken == nil)
            let members = try script.members()
            #expect(members["AuthFlow"] as? String == name && members["ClientId"] as? String == "client")
            let expected = parameters.merging(["USERNAME": "ann"]) { $1 }
            #expect(members["AuthParameters"] as? [String: String] == expected)
        }
    }

    @Test(
        "A way that needs a password asks nothing without one",
        arguments: [
            CognitoUserPool.Flow.password, .passwordProof, .choice(preferred: .password),
            .choice(preferred: .passwordProof),
        ])
    func needsPassword(_ flow: CognitoUserPool.Flow) async throws {
        try await Script.run { (script) async throws in
            let code = try await cognitoCode {
                try await script.pool().signIn("ann", password: nil, flow: flow, within: ample)
            }
            #expect(code == .invalidInput && script.operations.isEmpty)
        }
    }

    private static func device() throws -> RememberedDevice {
        try JSONDecoder().decode(
            RememberedDevice.self, from: Data(#"{"key": "k", "group": "g", "password": "p"}"#.utf8))
    }

    @Test(
        "A sign-in is begun anew without a device that the pool does not know, and not where the client is unknown",
        arguments: [("Device does not exist.", 2), ("User pool client c does not exist.", 1)])
    func unknownDevice(message: String, attempts: Int) async throws {
        let device = try Self.device()
        try await Script.run { (script) async throws in
            script.fail("InitiateAuth", "ResourceNotFoundException", message)
            let code = try await cognitoCode {
                try await script.pool().signIn("ann", password: "word", flow: .password, device: device, within: ample)
            }
            #expect(code == .configuration && script.operations.count == attempts)
        }
    }

    @Test("An answer that names a device which the pool has forgotten is a fault of the configuration, and sent once")
    func forgottenInAnswer() async throws {
        let device = try Self.device()
        try await Script.run(["InitiateAuth": try Script.challenge("SMS_MFA")]) { (script) async throws in
            let pool = script.pool()
            let challenge = try await pool.signIn(
                "ann", password: "word", flow: .password, device: device, within: ample
            ).challenge
            script.fail("RespondToAuthChallenge", "ResourceNotFoundException", "Device does not exist.")
            let code = try await cognitoCode { try await pool.answer(challenge, .code("1"), within: ample) }
            #expect(code == .configuration)
            #expect(script.operations == ["InitiateAuth", "RespondToAuthChallenge"])
        }
    }

    @Test(
        "A sign-in on a remembered device names the device, by whichever way it begins",
        arguments: [CognitoUserPool.Flow.password, .custom, .choice()])
    func namesDevice(_ flow: CognitoUserPool.Flow) async throws {
        let device = try Self.device()
        try await Script.run(["InitiateAuth": try Script.result()]) { (script) async throws in
            _ = try await script.pool().signIn("ann", password: "word", flow: flow, device: device, within: ample)
            let parameters = try script.members()["AuthParameters"] as? [String: String]
            #expect(parameters?["DEVICE_KEY"] == "k")
        }
    }

    @Test("A server that asks for the proof of a device again and again is given up")
    func deviceAgain() async throws {
        let parameters = ["SALT": "ab", "SRP_B": "5", "SECRET_BLOCK": "AAAA", "USER_ID_FOR_SRP": "u"]
        let device = try Self.device()
        let asking = try Script.challenge("DEVICE_SRP_AUTH")
        let answers = [asking, try Script.challenge("DEVICE_PASSWORD_VERIFIER", parameters)]
        for answer in answers {
            try await Script.run(["InitiateAuth": asking, "RespondToAuthChallenge": answer]) {
                (script) async throws in
                let pool = script.pool()
                let step = try? await pool.signIn(
                    "ann", password: "word", flow: .password, device: device, within: ample)
                // It is told as one that the program cannot answer, or as a server that makes no sense.
                if let step { #expect(try step.challenge.kind == .unknown(name: "DEVICE_PASSWORD_VERIFIER")) }
                #expect(script.operations.count <= 4, "\(script.operations)")
            }
        }
    }

    @Test("The answer to a challenge names the device that the sign-in began on, and the tokens keep it")
    func deviceOfChallenge() async throws {
        let answers = [
            "InitiateAuth": try Script.challenge("SMS_MFA"), "RespondToAuthChallenge": try Script.result(),
        ]
        let device = try Self.device()
        try await Script.run(answers) { (script) async throws in
            let pool = script.pool()
            let challenge = try await pool.signIn(
                "ann", password: "word", flow: .password, device: device, within: ample
            ).challenge
            let tokens = try await pool.answer(challenge, .code("1"), within: ample).tokens
            let responses = try script.members()["ChallengeResponses"] as? [String: String]
            #expect(responses == ["USERNAME": "ann", "SMS_MFA_CODE": "1", "DEVICE_KEY": "k"])
            #expect(tokens.deviceKey == "k")
        }
    }

    /// The answers to a sign-in in the middle of which an authenticator app is set up.
    private static func setUp(_ status: String = "SUCCESS") throws -> [String: String] {
        [
            "InitiateAuth": try Script.challenge("MFA_SETUP", ["MFAS_CAN_SETUP": #"["SOFTWARE_TOKEN_MFA"]"#]),
            "AssociateSoftwareToken": #"{"SecretCode": "KEY", "Session": "s2"}"#,
            "VerifySoftwareToken": #"{"Status": "\#(status)", "Session": "s3"}"#,
            "RespondToAuthChallenge": try Script.result(),
        ]
    }

    @Test("All exchanges of a step have the time that the caller says, and the device that the sign-in began on")
    func time() async throws {
        let device = try Self.device()
        try await Script.run(Self.setUp()) { (script) async throws in
            let pool = script.pool { $0.timeout = .zero }
            let challenge = try await pool.signIn(
                "ann", password: nil, flow: .custom, device: device, within: ample
            ).challenge
            let key = try await pool.authenticatorKey(for: challenge, within: ample)
            let tokens = try await pool.answer(key.challenge, .code("1"), within: ample).tokens
            #expect(tokens.deviceKey == "k")
            script.fail("InitiateAuth", "ResourceNotFoundException", "Device does not exist.")
            let code = try await cognitoCode {
                try await pool.signIn("ann", password: nil, flow: .custom, device: device, within: ample)
            }
            #expect(code == .configuration)
        }
    }

    @Test("A step of a sign-in for which the caller says no time has that of the pool's options")
    func timeOfOptions() async throws {
        try await Script.run(Self.setUp()) { (script) async throws in
            let pool = script.pool { $0.timeout = .zero }
            let challenge = try await pool.signIn("ann", password: nil, flow: .custom, within: ample).challenge
            let key = try await pool.authenticatorKey(for: challenge, within: ample)
            let asked = script.operations.count
            let codes = [
                try await cognitoCode { try await pool.authenticatorKey(for: challenge) },
                try await cognitoCode { try await pool.answer(key.challenge, .code("1")) },
            ]
            #expect(codes == [.unreachable, .unreachable] && script.operations.count == asked)
        }
    }

    @Test("What an authenticator app reads from a picture has every character of the names encoded")
    func picture() async throws {
        try await Script.run(Self.setUp()) { (script) async throws in
            let pool = script.pool()
            let challenge = try await pool.signIn("a+1@b?c", password: nil, flow: .custom, within: ample).challenge
            let uri = try await pool.authenticatorKey(for: challenge, within: ample).uri(issuer: "My Movies")
            #expect(uri == "otpauth://totp/My%20Movies:a%2B1%40b%3Fc?secret=KEY&issuer=My%20Movies")
        }
    }

    @Test("A challenge whose name has no end is told in short")
    func longName() async throws {
        let name = String(repeating: "A", count: 10_000)
        try await Script.run(["InitiateAuth": try Script.challenge(name)]) { (script) async throws in
            let challenge = try await script.pool().signIn("ann", password: nil, flow: .custom, within: ample).challenge
            #expect(challenge.kind == .unknown(name: name) && challenge.description.count < 100)
        }
    }

    @Test("Each challenge is told as what it asks for")
    func kinds() async throws {
        let sent = ["CODE_DELIVERY_DELIVERY_MEDIUM": "SMS", "CODE_DELIVERY_DESTINATION": "+1***"]
        let delivery = CodeDelivery(medium: "SMS", destination: "+1***")
        let cases: [(String, [String: String], String, SignInChallenge.Kind)] = [
            ("SMS_MFA", sent, "", .code(.secondMessageCode, delivery)),
            ("SMS_OTP", sent, "", .code(.messageCode, delivery)),
            ("EMAIL_OTP", [:], "", .code(.emailCode, CodeDelivery(medium: nil, destination: nil))),
            (
                "SOFTWARE_TOKEN_MFA", [:], "",
                .code(.authenticator, CodeDelivery(medium: nil, destination: nil))
            ),
            (
                "NEW_PASSWORD_REQUIRED",
                ["requiredAttributes": #"["userAttributes.a","b"]"#, "userAttributes": #"{"c":"3"}"#], "",
                .newPassword(required: ["a", "b"], attributes: ["c": "3"])
            ),
            (
                "NEW_PASSWORD_REQUIRED", ["requiredAttributes": "no list", "userAttributes": "[]"], "",
                .newPassword(required: [], attributes: [:])
            ),
            (
                "SELECT_MFA_TYPE", ["MFAS_CAN_CHOOSE": #"["SMS_MFA","SOFTWARE_TOKEN_MFA"]"#], "",
                .chooseSecondFactor([.secondMessageCode, .authenticator])
            ),
            (
                "SELECT_CHALLENGE", [:],
                #", "AvailableChallenges": ["PASSWORD", "PASSWORD_SRP", "EMAIL_OTP", "SMS_OTP", "WEB_AUTHN", "NEW"]"#,
                .chooseFirstFactor([.password, .passwordProof, .emailCode, .messageCode, .passkey, .other("NEW")])
            ),
            ("SELECT_CHALLENGE", [:], "", .chooseFirstFactor([])),
            ("MFA_SETUP", ["MFAS_CAN_SETUP": #"["SMS_MFA","SOFTWARE_TOKEN_MFA"]"#], "", .setUpAuthenticator),
            ("MFA_SETUP", ["MFAS_CAN_SETUP": #"["SMS_MFA"]"#], "", .unknown(name: "MFA_SETUP")),
            ("CUSTOM_CHALLENGE", ["USERNAME": "u", "USER_ID_FOR_SRP": "u", "q": "?"], "", .custom(["q": "?"])),
            ("WEB_AUTHN", ["CREDENTIAL_REQUEST_OPTIONS": "{}"], "", .passkey(options: "{}")),
            ("PASSWORD_VERIFIER", [:], "", .unknown(name: "PASSWORD_VERIFIER")),
        ]
        try await Script.run { (script) async throws in
            for (name, parameters, more, kind) in cases {
                script.set("InitiateAuth", try Script.challenge(name, parameters, more: more))
                let found = try await script.pool().signIn("ann", password: nil, flow: .custom, within: ample)
                    .challenge
                #expect(found.kind == kind, "\(name)")
                #expect(found.user == parameters["USERNAME"] ?? "ann" && found.description == "challenge \(name)")
            }
        }
    }

    @Test("Each answer is sent by the challenge's own name, with its session")
    func answers() async throws {
        let list = #", "AvailableChallenges": ["PASSWORD"]"#
        let cases: [(String, [String: String], String, SignInAnswer, [String: String])] = [
            ("SMS_OTP", [:], "", .code("1"), ["SMS_OTP_CODE": "1"]),
            ("SOFTWARE_TOKEN_MFA", [:], "", .code("1"), ["SOFTWARE_TOKEN_MFA_CODE": "1"]),
            (
                "NEW_PASSWORD_REQUIRED", [:], "", .newPassword("n", attributes: ["a": "1"]),
                ["NEW_PASSWORD": "n", "userAttributes.a": "1"]
            ),
            ("SELECT_MFA_TYPE", [:], "", .factor(.secondMessageCode), ["ANSWER": "SMS_MFA"]),
            ("SELECT_CHALLENGE", [:], list, .factor(.passkey), ["ANSWER": "WEB_AUTHN"]),
            ("SELECT_CHALLENGE", [:], list, .factor(.other("NEW")), ["ANSWER": "NEW"]),
            (
                "SELECT_CHALLENGE", [:], list, .password("p", asProof: false), ["ANSWER": "PASSWORD", "PASSWORD": "p"]
            ),
            ("CUSTOM_CHALLENGE", [:], "", .text("t"), ["ANSWER": "t"]),
            ("WEB_AUTHN", [:], "", .credential("{}"), ["CREDENTIAL": "{}"]),
        ]
        try await Script.run(["RespondToAuthChallenge": try Script.result()]) { (script) async throws in
            let pool = script.pool()
            for (name, parameters, more, answer, responses) in cases {
                script.set("InitiateAuth", try Script.challenge(name, parameters, more: more))
                let challenge = try await pool.signIn("ann", password: nil, flow: .custom, within: ample).challenge
                _ = try await pool.answer(challenge, answer, within: ample).tokens
                let members = try script.members()
                #expect(members["ChallengeName"] as? String == name && members["Session"] as? String == "s1")
                let expected = responses.merging(["USERNAME": "ann"]) { $1 }
                #expect(members["ChallengeResponses"] as? [String: String] == expected, "\(name)")
            }
        }
    }

    @Test("A password that answers a challenge by a proof is not sent")
    func provenChoice() async throws {
        let list = #", "AvailableChallenges": ["PASSWORD_SRP"]"#
        let answers = [
            "InitiateAuth": try Script.challenge("SELECT_CHALLENGE", more: list),
            "RespondToAuthChallenge": try Script.result(),
        ]
        try await Script.run(answers) { (script) async throws in
            let pool = script.pool()
            let challenge = try await pool.signIn("ann", password: nil, flow: .choice(), within: ample).challenge
            _ = try await pool.answer(challenge, .password("a secret word"), within: ample).tokens
            let responses = try script.members()["ChallengeResponses"] as? [String: String]
            #expect(responses?["ANSWER"] == "PASSWORD_SRP" && responses?["SRP_A"] != nil)
            #expect(responses?.values.contains { $0.contains("secret") } == false)
        }
    }

    @Test("A sign-in that begins with a preferred proof of the password does not send the password")
    func preferredProof() async throws {
        try await Script.run(["InitiateAuth": try Script.result()]) { (script) async throws in
            let flow = CognitoUserPool.Flow.choice(preferred: .passwordProof)
            _ = try await script.pool().signIn("ann", password: "a secret word", flow: flow, within: ample)
            let parameters = try script.members()["AuthParameters"] as? [String: String]
            #expect(parameters?["PREFERRED_CHALLENGE"] == "PASSWORD_SRP" && parameters?["SRP_A"] != nil)
            #expect(parameters?.values.contains { $0.contains("secret") } == false)
        }
    }

    @Test("An authenticator app is confirmed with the session of its key, and the sign-in goes on with the next")
    func authenticator() async throws {
        try await Script.run(Self.setUp("ERROR")) { (script) async throws in
            let pool = script.pool()
            let challenge = try await pool.signIn("ann", password: nil, flow: .custom, within: ample).challenge
            let key = try await pool.authenticatorKey(for: challenge, within: ample)
            #expect(key.secret == "KEY" && key.challenge.kind == .confirmAuthenticator && key.challenge.user == "ann")
            #expect(try script.text() == #"{"Session":"s1"}"#)
            let refused = try await cognitoCode { try await pool.answer(key.challenge, .code("1"), within: ample) }
            #expect(refused == .codeMismatch)
            #expect(try script.text() == #"{"Session":"s2","UserCode":"1"}"#)
            script.set("VerifySoftwareToken", #"{"Status": "SUCCESS", "Session": "s3"}"#)
            _ = try await pool.answer(key.challenge, .code("1"), within: ample).tokens
            #expect(try script.members()["Session"] as? String == "s3")
            // No other challenge has a key, and none comes without a session to go on with.
            let wrong = try await cognitoCode { try await pool.authenticatorKey(for: key.challenge, within: ample) }
            #expect(wrong == .invalidInput)
            for answer in ["{}", #"{"SecretCode": "KEY"}"#, #"{"Session": "s2"}"#] {
                script.set("AssociateSoftwareToken", answer)
                let code = try await cognitoCode { try await pool.authenticatorKey(for: challenge, within: ample) }
                #expect(code == .unusableAnswer)
            }
        }
    }
}
