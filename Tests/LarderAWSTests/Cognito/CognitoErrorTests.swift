import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import NIOHTTP1
import Testing

@Suite("Errors of Cognito", .timeLimit(.minutes(5)))
struct CognitoErrorTests {
    private static let kinds: [(CognitoError.Code, [String])] = [
        (.wrongCredentials, ["NotAuthorizedException"]), (.userNotFound, ["UserNotFoundException"]),
        (.userNotConfirmed, ["UserNotConfirmedException"]),
        (.passwordResetRequired, ["PasswordResetRequiredException"]), (.signInAgain, ["RefreshTokenReuseException"]),
        (.codeMismatch, ["CodeMismatchException", "EnableSoftwareTokenMFAException"]),
        (.codeExpired, ["ExpiredCodeException"]), (.weakPassword, ["InvalidPasswordException"]),
        (.passwordUsedBefore, ["PasswordHistoryPolicyViolationException"]),
        (.userExists, ["UsernameExistsException"]), (.aliasExists, ["AliasExistsException"]),
        (.tooManyAttempts, ["TooManyFailedAttemptsException"]),
        (
            .refusedByFunction,
            ["UserLambdaValidationException", "UnexpectedLambdaException", "InvalidLambdaResponseException"]
        ),
        (.throttled, ["TooManyRequestsException", "LimitExceededException", "ThrottlingException"]),
        (
            .unreachable,
            [
                "InternalErrorException", "ExternalServiceException", "ConcurrentModificationException",
                "ServiceUnavailableException", "CodeDeliveryFailureException",
            ]
        ),
        (.invalidInput, ["InvalidParameterException"]),
        (
            .configuration,
            [
                "ResourceNotFoundException", "ResourceConflictException", "UnsupportedOperationException",
                "InvalidUserPoolConfigurationException", "InvalidSmsRoleAccessPolicyException",
                "InvalidSmsRoleTrustRelationshipException", "MFAMethodNotFoundException",
                "SoftwareTokenMFANotFoundException", "FeatureUnavailableInTierException", "UnauthorizedException",
                "UnsupportedTokenTypeException", "InvalidIdentityPoolConfigurationException",
            ]
        ),
        (.rejected, ["SomethingNewException"]),
    ]

    private func error(_ script: CognitoScript) async throws -> CognitoError {
        let error = await #expect(throws: CognitoError.self) {
            _ = try await script.pool().forgotPassword(of: "ann", within: ample)
        }
        return try #require(error)
    }

    @Test("Each of Cognito's names for an error has its code")
    func names() async throws {
        try await CognitoScript.run { (script) async throws in
            for (code, names) in Self.kinds {
                for name in names {
                    script.fail("ForgotPassword", name)
                    let error = try await error(script)
                    #expect(error.code == code && error.serverCode == name, "\(name): \(error)")
                    #expect(error.message == "m" && error.description == "m [\(code.rawValue)]")
                }
            }
        }
    }

    @Test("The remedy of an error of Cognito has the time that Cognito asks to wait")
    func remedyWithTime() {
        let error = CognitoError(.throttled, "Too often", retryAfter: .seconds(9))
        let told = LarderError(.init(rawValue: error.code.rawValue), error.message, cause: error)
        #expect(told.remedy == .tryAgain(after: .seconds(9)))
    }

    @Test("Each code keeps the name that programs compare with")
    func codes() {
        let names: [(CognitoError.Code, String)] = [
            (.unreachable, "unreachable"), (.throttled, "throttled"), (.cancelled, "cancelled"),
            (.wrongCredentials, "wrongCredentials"), (.signInAgain, "signInAgain"), (.userNotFound, "userNotFound"),
            (.userNotConfirmed, "userNotConfirmed"), (.passwordResetRequired, "passwordResetRequired"),
            (.codeMismatch, "codeMismatch"), (.codeExpired, "codeExpired"), (.weakPassword, "weakPassword"),
            (.passwordUsedBefore, "passwordUsedBefore"), (.userExists, "userExists"), (.aliasExists, "aliasExists"),
            (.tooManyAttempts, "tooManyAttempts"), (.emptyField, "emptyField"), (.invalidInput, "invalidInput"),
            (.userDisabled, "userDisabled"), (.refusedByFunction, "refusedByFunction"),
            (.federatedRefused, "federatedRefused"), (.flowNotEnabled, "flowNotEnabled"),
            (.clientSecret, "clientSecret"), (.configuration, "configuration"),
            (.unknownChallenge, "unknownChallenge"), (.foreignToken, "foreignToken"),
            (.unusableAnswer, "unusableAnswer"), (.rejected, "rejected"),
        ]
        for (code, name) in names { #expect(code.rawValue == "cognito.\(name)") }
    }

    @Test(
        "A name that stands for several things is told apart by its message",
        arguments: [
            ("NotAuthorizedException", "User is disabled.", CognitoError.Code.userDisabled),
            ("NotAuthorizedException", "Unable to verify secret hash for client", .clientSecret),
            ("NotAuthorizedException", "Invalid session for the user.", .signInAgain),
            ("NotAuthorizedException", "Refresh Token has been revoked", .signInAgain),
            ("NotAuthorizedException", "Password attempts exceeded", .tooManyAttempts),
            ("NotAuthorizedException", "Incorrect username or password.", .wrongCredentials),
            ("InvalidParameterException", "USER_SRP_AUTH flow not enabled for this client", .flowNotEnabled),
            ("InvalidParameterException", "USER_SRP_AUTH is not enabled for the client.", .flowNotEnabled),
            ("UserNotFoundException", "User is disabled: session", .userNotFound),
        ])
    func messages(_ name: String, _ message: String, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            script.fail("ForgotPassword", name, message)
            let found = try await error(script).code
            #expect(found == code)
        }
    }

    @Test(
        "A name that is not known means what the status says",
        arguments: [
            (400, CognitoError.Code.rejected), (429, .throttled), (500, .unreachable), (503, .unreachable),
        ])
    func unknownName(_ status: Int, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ForgotPassword", #"{"__type": "SomethingNewException"}"#, status: status)
            let found = try await error(script)
            #expect(found.code == code && found.serverCode == "SomethingNewException")
        }
    }

    @Test("A name in the head counts for more than one in the body, up to its colon, and without its namespace")
    func head() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set(
                "ForgotPassword", #"{"__type": "UserNotFoundException", "Message": "said"}"#, status: 400,
                headers: [("x-amzn-errortype", "ns#CodeMismatchException:http://amazon"), ("Retry-After", "7")])
            let found = try await error(script)
            #expect(found.code == .codeMismatch && found.serverCode == "CodeMismatchException")
            #expect(found.message == "said" && found.retryAfter == .seconds(7))
        }
    }

    @Test("Cognito's Retry-After with a date is measured by its own Date header")
    func retryAfterDate() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set(
                "ForgotPassword", "{}", status: 429,
                headers: [
                    ("Retry-After", "Sun, 06 Nov 1994 08:50:07 GMT"), ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ])
            let found = try await error(script)
            #expect(found.code == .throttled && found.retryAfter == .seconds(30))
        }
    }

    @Test("An error is one whatever the status that it comes with: no code is taken for right that was not")
    func status200() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ConfirmSignUp", #"{"__type": "ns#CodeMismatchException", "message": "wrong"}"#)
            let inBody = try await cognitoCode {
                try await script.pool().confirmSignUp("ann", code: "1", within: ample)
            }
            #expect(inBody == .codeMismatch)
            script.set("ConfirmSignUp", "{}", headers: [("x-amzn-errortype", "ExpiredCodeException")])
            let inHead = try await cognitoCode {
                try await script.pool().confirmSignUp("ann", code: "1", within: ample)
            }
            #expect(inHead == .codeExpired)
            // Another member of that name is no error.
            script.set("ConfirmSignUp", #"{"__type": "ConfirmSignUpResponse"}"#)
            try await script.pool().confirmSignUp("ann", code: "1", within: ample)
        }
    }

    @Test("What could not be reached says why")
    func reason() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ForgotPassword", Reply(ending: .hang, isSilent: true))
            let late = await #expect(throws: CognitoError.self) {
                _ = try await script.pool().forgotPassword(of: "a", within: .milliseconds(50))
            }
            #expect(late?.message == "Cognito had not answered by the deadline." && late?.cause is TransportError)
            let away = await #expect(throws: CognitoError.self) {
                let pool = script.pool { $0.endpoint = URL(string: "http://127.0.0.1:1/") }
                _ = try await pool.forgotPassword(of: "a", within: ample)
            }
            let message = away?.message ?? ""
            #expect(message.hasPrefix("Cognito could not be reached: ") && message.count > 35, "\(message)")
        }
    }

    @Test("What Cognito says is cut at 500 characters, and an error without words says its name")
    func words() async throws {
        try await CognitoScript.run { (script) async throws in
            script.fail("ForgotPassword", "UserNotFoundException", String(repeating: "x", count: 501))
            let long = try await error(script).message
            #expect(long == String(repeating: "x", count: 500))
            script.fail("ForgotPassword", "UserNotFoundException", "")
            let short = try await error(script).message
            #expect(short == "Cognito answered UserNotFoundException.")
        }
    }

    @Test(
        "A status without a name is a fault of the server, a plea to wait, or a refusal",
        arguments: [
            (500, CognitoError.Code.unreachable), (503, .unreachable), (429, .throttled), (499, .rejected),
            (400, .rejected), (300, .unusableAnswer),
        ])
    func statuses(_ status: Int, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ForgotPassword", "<html>", status: status, headers: [("Retry-After", "9")])
            let found = try await error(script)
            #expect(found.code == code)
            #expect(found.retryAfter == (code == .unusableAnswer ? nil : .seconds(9)))
            // A name that is not known leaves it to the status.
            script.set("ForgotPassword", #"{"__type": "New"}"#, status: status)
            let named = try await error(script).code
            #expect(named == code)
        }
    }

    @Test("A name that the library knows counts for more than the status")
    func nameBeforeStatus() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("ForgotPassword", #"{"__type": "UserNotFoundException"}"#, status: 500)
            let found = try await error(script).code
            #expect(found == .userNotFound)
        }
    }

    @Test("An exchange that comes to nothing is unreachable, or cancelled")
    func transport() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, away) = (script.pool(), script.pool { $0.endpoint = URL(string: "http://127.0.0.1:1/") })
            let refused = try await cognitoCode { try await away.forgotPassword(of: "a", within: ample) }
            #expect(refused == .unreachable)
            let late = try await cognitoCode { try await pool.forgotPassword(of: "a", within: .zero) }
            #expect(late == .unreachable)
            script.set("ForgotPassword", Reply(ending: .hang, isSilent: true))
            let silent = try await cognitoCode {
                try await pool.forgotPassword(of: "a", within: .milliseconds(50))
            }
            #expect(silent == .unreachable)
            let task = Task { try await pool.forgotPassword(of: "a", within: ample) }
            task.cancel()
            let cancelled = try await cognitoCode { try await task.value }
            #expect(cancelled == .cancelled)
        }
    }

    @Test(
        "A session learns of a refusal only where Cognito has refused",
        arguments: [
            ("NotAuthorizedException", "identity.userPoolRefused"),
            ("RefreshTokenReuseException", "identity.userPoolRefused"),
            ("UserNotFoundException", "identity.userPoolRefused"),
            ("UserNotConfirmedException", "identity.userPoolRefused"),
            ("PasswordResetRequiredException", "identity.userPoolRefused"),
            ("InternalErrorException", "identity.unreachable"), ("ThrottlingException", "identity.throttled"),
            ("TooManyFailedAttemptsException", "identity.throttled"),
            ("ResourceNotFoundException", "identity.unusable"),
            ("CodeMismatchException", "identity.unusable"), ("UserLambdaValidationException", "identity.unusable"),
        ])
    func refusals(_ name: String, _ code: String) async throws {
        try await CognitoScript.run { (script) async throws in
            for operation in ["RevokeToken", "GetTokensFromRefreshToken"] {
                script.set(
                    operation, #"{"__type": "\#(name)"}"#, status: 400, headers: [("Retry-After", "3")])
            }
            let provider = script.provider()
            let user = Credentials(userPool: try CognitoScript.tokens())
            let out = await #expect(throws: IdentityError.self) { try await provider.signOut(user, within: ample) }
            #expect(out?.code.rawValue == code && out?.retryAfter == .seconds(3))
            let refresh = await #expect(throws: IdentityError.self) {
                _ = try await provider.refresh(.userPool, of: user, within: ample)
            }
            #expect(refresh?.code.rawValue == code)
        }
    }

    @Test("A user who has been disabled is one whom Cognito has refused")
    func disabled() async throws {
        try await CognitoScript.run { (script) async throws in
            script.fail("GetTokensFromRefreshToken", "NotAuthorizedException", "User is disabled.")
            let user = Credentials(userPool: try CognitoScript.tokens())
            let refresh = await #expect(throws: IdentityError.self) {
                _ = try await script.provider().refresh(.userPool, of: user, within: ample)
            }
            #expect(refresh?.code == .userPoolRefused)
        }
    }

    @Test("Tokens of another user end no session: nothing says that the refresh token is refused")
    func foreignTokens() async throws {
        let id = try CognitoScript.token("id") { $0["sub"] = "sub-eve" }
        let access = try CognitoScript.token("access") { $0["sub"] = "sub-eve" }
        let answer = try CognitoScript.result(id: id, access: access)
        try await CognitoScript.run(["GetTokensFromRefreshToken": answer]) { (script) async throws in
            let user = Credentials(userPool: try CognitoScript.tokens())
            let error = await #expect(throws: IdentityError.self) {
                _ = try await script.provider().refresh(.userPool, of: user, within: ample)
            }
            #expect(error?.code == .unusable)
        }
    }

    @Test("Tokens of another user that the pages give for a refresh token are refused")
    func foreignTokensOfPages() async throws {
        let id = try CognitoScript.token("id") { $0["sub"] = "sub-eve" }
        let access = try CognitoScript.token("access") { $0["sub"] = "sub-eve" }
        try await CognitoScript.run { (script) async throws in
            script.set("", #"{"id_token": "\#(id)", "access_token": "\#(access)", "expires_in": 60}"#)
            let pages = try script.pages()
            let pool = script.pool { $0.refreshesOn = pages }
            let code = try await cognitoCode { try await pool.refresh(CognitoScript.tokens(), within: ample) }
            #expect(code == .foreignToken)
        }
    }

    @Test("A user reads the library's text for an error's code, and a developer what Cognito said, with the cause")
    func localized() {
        let error = CognitoError(.codeMismatch, "said", cause: CognitoError(.cancelled, "why"))
        let text = ErrorTexts(languages: Locale.preferredLanguages)
            .text(for: LarderError(.init(rawValue: "cognito.codeMismatch"), "said"))
        #expect(error.errorDescription == text && !text.isEmpty && text != "said")
        #expect(error.failureReason == "said")
        #expect(error.description == "said [cognito.codeMismatch]: why [cognito.cancelled]")
    }

    @Test("A request that is too large to be sent is no outage of Cognito's")
    func unsendable() async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = try script.pages()
            let pool = script.pool(secret: String(repeating: "s", count: 40_000)) { $0.refreshesOn = pages }
            let found = try await cognitoCode { try await pool.refresh(CognitoScript.tokens(), within: ample) }
            #expect(found == .unusableAnswer && script.server.requests.isEmpty)
        }
    }

    @Test("An answer has 1 MiB at most", arguments: [(0, nil), (1, CognitoError.Code.unusableAnswer)])
    func longAnswer(excess: Int, code: CognitoError.Code?) async throws {
        let answer = #"{"CodeDeliveryDetails": {"DeliveryMedium": "EMAIL", "Destination": "a***"}}"#
        let rest = String(repeating: " ", count: (1 << 20) + excess - answer.utf8.count)
        try await CognitoScript.run(["ForgotPassword": answer + rest]) { script in
            do throws(CognitoError) {
                let delivery = try await script.pool().forgotPassword(of: "ann", within: ample)
                #expect(code == nil && delivery.destination == "a***")
            } catch { #expect(error.code == code) }
        }
    }

    @Test("A refresh or a sign-out that Cognito refuses has Cognito's own error as its cause")
    func causeOfRefusal() async throws {
        try await CognitoScript.run { (script) async throws in
            for operation in ["RevokeToken", "GetTokensFromRefreshToken"] {
                script.fail(operation, "NotAuthorizedException", "Refresh Token has been revoked")
            }
            let (provider, user) = (script.provider(), Credentials(userPool: try CognitoScript.tokens()))
            let out = await #expect(throws: IdentityError.self) { try await provider.signOut(user, within: ample) }
            let refresh = await #expect(throws: IdentityError.self) {
                _ = try await provider.refresh(.userPool, of: user, within: ample)
            }
            for error in [out, refresh] {
                let cause = error?.cause as? CognitoError
                #expect(cause?.code == .signInAgain && cause?.serverCode == "NotAuthorizedException")
            }
        }
    }
}
