import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

/// What the pools are sent, and what of their answers is taken.
@Suite("Pools of Cognito", .timeLimit(.minutes(5)))
struct CognitoPoolTests {
    private static func keys(_ more: String = #", "Expiration": 784112377"#) -> String {
        #"{"Credentials": {"AccessKeyId": "A", "SecretKey": "S", "SessionToken": "T"\#(more)}}"#
    }

    // 784111777: 600 seconds before the keys end.
    private static let date = [("Date", "Sun, 06 Nov 1994 08:49:37 GMT")]

    private static let lifetimes: [(Int?, Double?)] = [
        (784_111_777, 0), (784_000_000, 0), (784_111_777 + 43_200, 43_200), (784_111_777 + 50_000, 43_200), (nil, nil),
    ]

    // MARK: Identity pools

    /// The error with which the pool gives an identity no credentials; without an identity, a new one.
    private func refusal(
        _ pool: CognitoIdentityPool, _ identity: String?, logins: [String: String] = [:],
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> CognitoError.Code {
        try await cognitoCode(sourceLocation: sourceLocation) {
            try await pool.credentials(identityID: identity, logins: logins, within: ample)
        }
    }

    @Test("A guest asks for an identity and for its credentials, without logins")
    func guest() async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "i"}"#]) { (script) async throws in
            script.set("GetCredentialsForIdentity", Self.keys(), headers: Self.date)
            let keys = try await script.identityPool().credentials(identityID: nil, logins: [:], within: ample)
            #expect(keys.identityID == "i" && keys.accessKeyID == "A" && keys.secretAccessKey == "S")
            #expect(keys.sessionToken == "T" && keys.expires == Date(timeIntervalSince1970: 2_000_000_600))
            #expect(script.operations == ["GetId", "GetCredentialsForIdentity"])
            let asked = try script.text()
            #expect(asked == #"{"IdentityId":"i"}"#)
        }
    }

    @Test("The identity is the one that the pool gives the credentials to, be it another than was asked for")
    func otherIdentity() async throws {
        try await CognitoScript.run { (script) async throws in
            let answer = #"{"IdentityId": "merged", "Credentials": {"AccessKeyId": "A", "SecretKey": "S"}}"#
            script.set("GetCredentialsForIdentity", answer)
            let keys = try await script.identityPool().credentials(identityID: "i", logins: [:], within: ample)
            #expect(keys.identityID == "merged")
        }
    }

    @Test("A role of the program's own is asked for, with the logins")
    func role() async throws {
        try await CognitoScript.run(["GetCredentialsForIdentity": Self.keys()]) { (script) async throws in
            let pool = script.identityPool { $0.roleARN = "arn" }
            _ = try await pool.credentials(identityID: "known", logins: ["a": "t"], within: ample)
            let asked = try script.text()
            #expect(asked == #"{"CustomRoleArn":"arn","IdentityId":"known","Logins":{"a":"t"}}"#)
            #expect(script.operations == ["GetCredentialsForIdentity"])
        }
    }

    @Test(
        "Credentials end when they say so, but not before now, nor after twelve hours, and never where they do not say",
        arguments: lifetimes)
    func ends(_ expiration: Int?, _ lifetime: Double?) async throws {
        try await CognitoScript.run { (script) async throws in
            let more = expiration.map { #", "Expiration": \#($0)"# } ?? ""
            script.set("GetCredentialsForIdentity", Self.keys(more), headers: Self.date)
            let keys = try await script.identityPool().credentials(identityID: "i", logins: [:], within: ample)
            #expect(keys.expires == lifetime.map { Date(timeIntervalSince1970: 2_000_000_000 + $0) })
        }
    }

    @Test("An answer without an identity, a key or a secret is of no use")
    func unusable() async throws {
        try await CognitoScript.run(["GetCredentialsForIdentity": Self.keys()]) { (script) async throws in
            let pool = script.identityPool()
            for answer in ["{}", #"{"IdentityId": ""}"#] {
                script.set("GetId", answer)
                let code = try await refusal(pool, nil)
                #expect(code == .unusableAnswer)
            }
            for keys in [
                #"{"SecretKey": "S"}"#, #"{"AccessKeyId": "A"}"#, #"{"AccessKeyId": "", "SecretKey": "S"}"#,
                #"{"AccessKeyId": "A", "SecretKey": ""}"#, "null",
            ] {
                script.set("GetCredentialsForIdentity", #"{"Credentials": \#(keys)}"#)
                let code = try await refusal(pool, "i")
                #expect(code == .unusableAnswer, "\(keys)")
            }
        }
    }

    @Test("Only an identity that was known and is gone is asked for anew, once")
    func goneIdentity() async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "new"}"#]) { (script) async throws in
            let pool = script.identityPool()
            script.fail("GetCredentialsForIdentity", "ResourceNotFoundException")
            for (known, asked) in [("old", 3), (nil, 2)] {
                let before = script.operations.count
                let code = try await refusal(pool, known)
                #expect(code == .configuration)
                #expect(script.operations.count - before == asked)
            }
            script.fail("GetCredentialsForIdentity", "InternalErrorException")
            let before = script.operations.count
            let code = try await refusal(pool, "old")
            #expect(code == .unreachable && script.operations.count - before == 1)
        }
    }

    @Test("A guest whose credentials could not be had is the next guest, and no user who comes meanwhile")
    func begunGuest() async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "guest"}"#]) { (script) async throws in
            let pool = script.identityPool()
            script.fail("GetCredentialsForIdentity", "InternalErrorException")
            let code = try await refusal(pool, nil)
            #expect(code == .unreachable)
            script.set("GetId", #"{"IdentityId": "user"}"#)
            script.set("GetCredentialsForIdentity", Self.keys())
            let user = try await pool.credentials(identityID: nil, logins: ["a": "t"], within: ample)
            #expect(user.identityID == "user")
            let guest = try await pool.credentials(identityID: nil, logins: [:], within: ample)
            #expect(guest.identityID == "guest")
            #expect(script.operations.count { $0 == "GetId" } == 2)
        }
    }

    @Test("After the pool has refused a guest, the next guest gets an identity of its own")
    func refusedGuest() async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "new"}"#]) { (script) async throws in
            let pool = script.identityPool()
            script.fail("GetCredentialsForIdentity", "NotAuthorizedException")
            let code = try await refusal(pool, "old")
            #expect(code == .federatedRefused)
            script.set("GetCredentialsForIdentity", Self.keys())
            let guest = try await pool.credentials(identityID: nil, logins: [:], within: ample)
            #expect(guest.identityID == "new")
        }
    }

    @Test("A guest does not get the identity of a user whose credentials the pool could not give")
    func begunUser() async throws {
        try await CognitoScript.run(["GetId": #"{"IdentityId": "user"}"#]) { (script) async throws in
            let pool = script.identityPool()
            script.fail("GetCredentialsForIdentity", "InternalErrorException")
            let code = try await refusal(pool, nil, logins: ["a": "t"])
            #expect(code == .unreachable)
            script.set("GetId", #"{"IdentityId": "guest"}"#)
            script.set("GetCredentialsForIdentity", Self.keys())
            let guest = try await pool.credentials(identityID: nil, logins: [:], within: ample)
            #expect(guest.identityID == "guest")
        }
    }

    // MARK: Providers

    @Test("A provider has the parts of the pools that the environment has")
    func parts() async throws {
        try await CognitoScript.run { (script) async throws in
            #expect(script.provider().parts == [.userPool, .cloud])
            #expect(script.provider(hasUsers: false).parts == [.cloud])
            #expect(script.provider(hasIdentities: false).parts == [.userPool])
            let alone = script.provider(hasUsers: false, hasIdentities: false)
            #expect(alone.parts.isEmpty)
            let user = Credentials(userPool: try CognitoScript.tokens())
            for part in [Credentials.Part.userPool, .cloud] {
                let error = await #expect(throws: IdentityError.self) {
                    _ = try await alone.refresh(part, of: user, within: ample)
                }
                #expect(error?.code == .unusable)
            }
            try await alone.signOut(user, within: ample)
            let guest = try await alone.guestCredentials(within: ample)
            #expect(guest == nil && script.operations.isEmpty)
        }
    }

    @Test("Logins of other providers are asked for beside the user pool's, and keep their names")
    func otherLogins() async throws {
        let answers = ["GetId": #"{"IdentityId": "i"}"#, "GetCredentialsForIdentity": Self.keys()]
        try await CognitoScript.run(answers) { (script) async throws in
            let provider = script.provider { _ in ["accounts.google.com": "g"] }
            let user = Credentials(userPool: try CognitoScript.tokens())
            let new = try await provider.refresh(.cloud, of: user, within: ample)
            #expect(new.userPool == nil && new.cloud?.identityID == "i")
            let logins = try script.members()["Logins"] as? [String: String]
            let name = "cognito-idp.eu-west-1.amazonaws.com/\(CognitoScript.poolID)"
            #expect(logins == ["accounts.google.com": "g", name: try CognitoScript.token("id")])
            let away = script.provider { _ in throw CancellationError() }
            let error = await #expect(throws: IdentityError.self) {
                _ = try await away.refresh(.cloud, of: user, within: ample)
            }
            #expect(error?.code == .unreachable)
        }
    }

    @Test("Who gives the tokens of other providers has the time that the refresh has")
    func loginTime() async throws {
        try await CognitoScript.run { (script) async throws in
            let provider = script.provider { time in
                #expect(time > .zero && time <= .seconds(20))
                return [:]
            }
            _ = try? await provider.refresh(.cloud, of: Credentials(), within: .seconds(20))
            #expect(script.operations == ["GetId"])
        }
    }

    @Test("A provider has the time that its caller says, whatever the pools' options say")
    func ownTime() async throws {
        let answers = [
            "GetId": #"{"IdentityId": "i"}"#, "GetCredentialsForIdentity": Self.keys(),
            "GetTokensFromRefreshToken": try CognitoScript.result(),
        ]
        try await CognitoScript.run(answers) { (script) async throws in
            let provider = script.provider(timeout: .zero)
            let guest = try await provider.guestCredentials(within: ample)
            #expect(guest?.cloud?.identityID == "i")
            let user = Credentials(userPool: try CognitoScript.tokens())
            let tokens = try await provider.refresh(.userPool, of: user, within: ample).userPool
            #expect(tokens?.refreshToken == "R")
            let keys = try await provider.refresh(.cloud, of: user, within: ample).cloud
            #expect(keys?.identityID == "i")
            try await provider.signOut(user, within: ample)
            #expect(script.operations.last == "RevokeToken")
        }
    }

    @Test("An identity pool that refuses a user or a guest says that it has, and one that is away does not")
    func federatedRefusal() async throws {
        try await CognitoScript.run { (script) async throws in
            let provider = script.provider()
            for (name, code) in [
                ("NotAuthorizedException", "federatedRefused"), ("InternalErrorException", "unreachable"),
            ] {
                script.fail("GetId", name, "token session secret disabled")
                let guest = await #expect(throws: IdentityError.self) {
                    _ = try await provider.guestCredentials(within: ample)
                }
                #expect(guest?.code.rawValue == "identity.\(code)")
                let user = await #expect(throws: IdentityError.self) {
                    _ = try await provider.refresh(.cloud, of: Credentials(), within: ample)
                }
                #expect(user?.code.rawValue == "identity.\(code)")
            }
        }
    }

    // MARK: User pools

    @Test("Tokens without a refresh token are neither refreshed nor revoked")
    func noRefreshToken() async throws {
        try await CognitoScript.run { (script) async throws in
            let pool = script.pool()
            let tokens = try CognitoScript.tokens(refresh: nil)
            let code = try await cognitoCode { try await pool.refresh(tokens, within: ample) }
            #expect(code == .signInAgain)
            try await pool.revoke(tokens, within: ample)
            #expect(script.operations.isEmpty)
        }
    }

    @Test("A refresh sends the device's key, and keeps what the answer does not replace")
    func deviceKey() async throws {
        let answer = try CognitoScript.result()
        try await CognitoScript.run(["GetTokensFromRefreshToken": answer, "InitiateAuth": answer]) {
            (script) async throws in
            let old = try CognitoScript.tokens(device: "D")
            let new = try await script.pool(secret: "s").refresh(old, within: ample)
            #expect(new.refreshToken == "R" && new.deviceKey == "D")
            let asked = try script.text()
            #expect(asked == #"{"ClientId":"client","ClientSecret":"s","DeviceKey":"D","RefreshToken":"R"}"#)
            _ = try await script.pool { $0.refreshesByFlow = true }.refresh(old, within: ample)
            let byFlow = try script.text()
            #expect(
                byFlow == #"{"AuthFlow":"REFRESH_TOKEN_AUTH","AuthParameters":"#
                    + #"{"DEVICE_KEY":"D","REFRESH_TOKEN":"R"},"ClientId":"client"}"#)
            script.set(
                "GetTokensFromRefreshToken",
                try CognitoScript.result(
                    more: #", "ExpiresIn": 60, "RefreshToken": "R2", "NewDeviceMetadata": {"DeviceKey": "D2"}"#))
            let rotated = try await script.pool().refresh(old, within: ample)
            #expect(rotated.refreshToken == "R2" && rotated.deviceKey == "D2")
            try await script.pool(secret: "s").revoke(old, within: ample)
            let revoked = try script.text()
            #expect(revoked == #"{"ClientId":"client","ClientSecret":"s","Token":"R"}"#)
        }
    }

    @Test("Tokens keep their client's secret, with which a pool that is given none refreshes and revokes them")
    func keptSecret() async throws {
        let answer = try CognitoScript.result(more: #", "ExpiresIn": 3600, "RefreshToken": "R""#)
        try await CognitoScript.run(["InitiateAuth": answer, "GetTokensFromRefreshToken": answer]) {
            (script) async throws in
            let step = try await script.pool(secret: "s")
                .signIn("ann", password: "word", flow: .password, within: ample)
            guard case .signedIn(let tokens) = step else {
                Issue.record("\(step)")
                return
            }
            let new = try await script.pool().refresh(tokens, within: ample)
            let asked = try script.text()
            #expect(asked == #"{"ClientId":"client","ClientSecret":"s","RefreshToken":"R"}"#)
            #expect(new.clientSecret == "s")
            try await script.pool().revoke(new, within: ample)
            let revoked = try script.text()
            #expect(revoked == #"{"ClientId":"client","ClientSecret":"s","Token":"R"}"#)
        }
    }

    @Test(
        "Tokens that are another's, in any way, are refused",
        arguments: [
            ("id", "iss", "https://other/x"), ("access", "iss", "https://other/x"), ("id", "token_use", "access"),
            ("access", "token_use", "id"), ("id", "aud", "other"), ("access", "client_id", "other"),
            ("access", "sub", "eve"),
        ])
    func foreign(_ use: String, _ claim: String, _ value: String) async throws {
        try await CognitoScript.run { (script) async throws in
            let token = try CognitoScript.token(use) { $0[claim] = value }
            script.set(
                "InitiateAuth",
                try CognitoScript.result(id: use == "id" ? token : nil, access: use == "id" ? nil : token))
            let code = try await cognitoCode {
                try await script.pool().signIn("ann", password: "word", flow: .password, within: ample)
            }
            #expect(code == .foreignToken)
        }
    }

    @Test("Tokens whose end is not said, or is no end, are of no use; a token's own end will do")
    func endless() async throws {
        try await CognitoScript.run { (script) async throws in
            func signIn(_ id: String, _ access: String, _ more: String) async throws -> SignInStep {
                script.set("InitiateAuth", try CognitoScript.result(id: id, access: access, more: more))
                return try await script.pool().signIn("ann", password: "word", flow: .password, within: ample)
            }
            func token(_ use: String, _ end: Double?) throws -> String {
                try CognitoScript.token(use) { $0["exp"] = end }
            }
            let (id, access) = (try token("id", nil), try token("access", nil))
            for more in ["", #", "ExpiresIn": 0"#, #", "ExpiresIn": 1e9"#] {
                let code = try await cognitoCode { try await signIn(id, access, more) }
                #expect(code == .unusableAnswer, "\(more)")
            }
            let own = try await signIn(id, try token("access", 1_030), "").tokens
            #expect(own.expires == Date(timeIntervalSince1970: 2_000_000_030))
            // A token that ends before it begins says nothing.
            let odd = try await signIn(try token("id", 900), access, #", "ExpiresIn": 77"#).tokens
            #expect(odd.expires == Date(timeIntervalSince1970: 2_000_000_077))
        }
    }

    @Test(
        "Tokens are good for the shortest time that Cognito or one of them says",
        arguments: [(60.0, 300.0, 600.0, 60.0), (3_600, 300, 600, 300), (3_600, 600, 300, 300)])
    func shortest(said: Double, id: Double, access: Double, good: Double) async throws {
        let result = try CognitoScript.result(
            id: try CognitoScript.token("id") { $0["exp"] = 1_000 + id },
            access: try CognitoScript.token("access") { $0["exp"] = 1_000 + access },
            more: #", "ExpiresIn": \#(said)"#)
        try await CognitoScript.run(["InitiateAuth": result]) { (script) async throws in
            let step = try await script.pool().signIn("ann", password: "word", flow: .password, within: ample)
            #expect(try step.tokens.expires == Date(timeIntervalSince1970: 2_000_000_000 + good))
        }
    }

    @Test("The lifetime of tokens counts from the time of the answer, and not of the request")
    func countedFromAnswer() async throws {
        try await CognitoScript.run(["GetTokensFromRefreshToken": try CognitoScript.result()]) {
            (script) async throws in
            // Each request takes a hundred seconds.
            let pool = script.pool {
                $0.wallClock = { Date(timeIntervalSince1970: 2_000_000_000 + 100 * Double(script.operations.count)) }
            }
            let new = try await pool.refresh(CognitoScript.tokens(), within: ample)
            #expect(new.expires == Date(timeIntervalSince1970: 2_000_003_700))
        }
    }

    @Test("A device that the pool could not remember can be remembered afterwards, and is no new one then")
    func rememberedLater() async throws {
        let device = #", "ExpiresIn": 3600, "NewDeviceMetadata": {"DeviceKey": "D", "DeviceGroupKey": "G"}"#
        try await CognitoScript.run(["InitiateAuth": try CognitoScript.result(more: device)]) {
            (script) async throws in
            let pool = script.pool()
            let tokens = try await pool.signIn("ann", password: "word", flow: .password, within: ample).tokens
            script.fail("ConfirmDevice", "InternalErrorException")
            let code = try await cognitoCode { try await pool.rememberDevice(of: tokens, within: ample) }
            #expect(code == .unreachable)
            script.set("ConfirmDevice", "{}")
            #expect(try await pool.rememberDevice(of: tokens, named: "a phone", within: ample)?.key == "D")
            #expect(try script.members()["DeviceName"] as? String == "a phone")
            #expect(try await pool.rememberDevice(of: tokens, within: ample) == nil)
        }
    }

    @Test("Accounts are kept by Cognito's operations, in the caller's time, with a proof of the client's secret")
    func accounts() async throws {
        let delivery = #"{"DeliveryMedium": "SMS", "Destination": "+1***", "AttributeName": "phone"}"#
        let answers = [
            "SignUp": #"{"UserConfirmed": true, "UserSub": "sub", "CodeDeliveryDetails": \#(delivery)}"#,
            "ForgotPassword": #"{"CodeDeliveryDetails": \#(delivery)}"#,
            "ResendConfirmationCode": #"{"CodeDeliveryDetails": \#(delivery)}"#,
            "GetUser": #"{"UserAttributes": [{"Name": "a", "Value": "1"}, {"Name": "b"}]}"#,
        ]
        try await CognitoScript.run(answers) { (script) async throws in
            // What the caller says counts for more than what the options say.
            let pool = script.pool(secret: "s") { $0.timeout = .zero }
            let tokens = try CognitoScript.tokens()
            func expect(_ operation: String, _ keys: [String], _ location: SourceLocation = #_sourceLocation) throws {
                #expect(script.operations.last == operation, sourceLocation: location)
                let found = try script.members().keys.sorted()
                #expect(found == keys.sorted(), sourceLocation: location)
            }
            let client = ["ClientId", "SecretHash", "Username"]
            let made = try await pool.signUp("ann", password: "p", attributes: ["b": "2", "a": "1"], within: ample)
            #expect(made.isConfirmed && made.id == "sub" && made.delivery.attribute == "phone")
            #expect(made.delivery.medium == "SMS" && made.delivery.destination == "+1***")
            try expect("SignUp", client + ["Password", "UserAttributes"])
            #expect(
                try script.text().contains(#""UserAttributes":[{"Name":"a","Value":"1"},{"Name":"b","Value":"2"}]"#))
            try await pool.confirmSignUp("ann", code: "1", within: ample)
            try expect("ConfirmSignUp", client + ["ConfirmationCode"])
            #expect(try await pool.resendConfirmation(of: "ann", within: ample).medium == "SMS")
            try expect("ResendConfirmationCode", client)
            #expect(try await pool.forgotPassword(of: "ann", within: ample).destination == "+1***")
            try expect("ForgotPassword", client)
            try await pool.setForgottenPassword(of: "ann", to: "n", code: "1", within: ample)
            try expect("ConfirmForgotPassword", client + ["ConfirmationCode", "Password"])
            try await pool.changePassword(from: "old", to: "new", tokens, within: ample)
            try expect("ChangePassword", ["AccessToken", "PreviousPassword", "ProposedPassword"])
            #expect(try script.members()["PreviousPassword"] as? String == "old")
            #expect(try await pool.attributes(tokens, within: ample) == ["a": "1", "b": ""])
            try expect("GetUser", ["AccessToken"])
            try await pool.changeAttributes(["a": "2"], tokens, within: ample)
            try expect("UpdateUserAttributes", ["AccessToken", "UserAttributes"])
            try await pool.deleteUser(tokens, within: ample)
            try expect("DeleteUser", ["AccessToken"])
            try await pool.signOutEverywhere(tokens, within: ample)
            try expect("GlobalSignOut", ["AccessToken"])
            #expect(try script.members()["AccessToken"] as? String == tokens.accessToken)
        }
    }

    @Test("An account that waits for its code is not confirmed")
    func unconfirmed() async throws {
        try await CognitoScript.run { (script) async throws in
            let made = try await script.pool().signUp("ann", password: "p", within: ample)
            #expect(!made.isConfirmed && made.id == nil && made.delivery == CodeDelivery(medium: nil, destination: nil))
            let keys = try script.members().keys.sorted()
            #expect(keys == ["ClientId", "Password", "UserAttributes", "Username"])
        }
    }

    @Test("A call that says no time has that of the pool's options")
    func time() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ResendConfirmationCode", .hang)
            script.set("GetCredentialsForIdentity", .hang)
            let users = script.pool { $0.timeout = .milliseconds(100) }
            let identities = script.identityPool { $0.timeout = .milliseconds(100) }
            let begun = SuspendingClock.now
            #expect(try await cognitoCode { try await users.resendConfirmation(of: "ann") } == .unreachable)
            let code = try await cognitoCode { try await identities.credentials(identityID: "known", logins: [:]) }
            #expect(code == .unreachable)
            try requireNear(begun + .milliseconds(200))
            let (late, tokens) = (script.pool { $0.timeout = .zero }, try CognitoScript.tokens())
            let codes = [
                try await cognitoCode { try await late.signIn("ann", password: "word", flow: .password) },
                try await cognitoCode { try await late.signUp("ann", password: "word") },
                try await cognitoCode { try await late.refresh(tokens) },
            ]
            #expect(codes == [.unreachable, .unreachable, .unreachable])
        }
    }
}
