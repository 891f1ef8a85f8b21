import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Sign-in flows that something keeps from the usual way",
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"), .timeLimit(.minutes(10)))
@MainActor
struct HinderedFlowTests {
    typealias User = CognitoFixture.User

    private static let right = ["name": "ann", "password": "right password"]
    private static let limited = #"{"type": "LimitExceededException", "message": "Attempt limit exceeded"}"#

    private nonisolated func withFlow(
        _ user: User, _ way: CognitoUserPool.Flow = .password,
        _ body: @MainActor @Sendable (SignInFlow, Session, CognitoFixture) async throws -> Void
    ) async throws {
        var options = SignInFlow.Options()
        (options.flow, options.timeout, options.resendPause) = (way, .seconds(300), .zero)
        try await CognitoFixture.run(users: ["ann": user]) { [options] fixture in
            try await fixture.withStore { _, app in
                let session = try app.session
                try await body(
                    await SignInFlow(try fixture.pool(), session: session, options: options), session, fixture)
            }
        }
    }

    private func code(_ flow: SignInFlow) -> String? { flow.state.failure?.code.rawValue }

    @Test("A user who has a code can enter it, though no other can be sent now", arguments: [false, true])
    func codeLimited(mustReset: Bool) async throws {
        try await withFlow(User(confirmed: mustReset, reset: mustReset)) { flow, session, fixture in
            try await fixture.fail(mustReset ? "ForgotPassword" : "ResendConfirmationCode", Self.limited)
            await flow.perform(.submit, Self.right)
            let delivery = CodeDelivery(medium: nil, destination: nil)
            #expect(flow.state.step == (mustReset ? .resetPassword(delivery) : .confirmAccount(delivery)))
            #expect(code(flow) == "cognito.throttled" && !flow.state.isWorking)
            await flow.perform(
                .submit, ["code": "123456"].merging(mustReset ? ["newPassword": "another one"] : [:]) { $1 })
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("An account that was confirmed elsewhere meanwhile is signed in", arguments: [false, true])
    func confirmedElsewhere(resends: Bool) async throws {
        try await withFlow(User(confirmed: false)) { flow, session, fixture in
            await flow.perform(.submit, Self.right)
            try await fixture.pool().confirmSignUp("ann", code: "123456", within: ample)
            if resends {
                try await fixture.fail(
                    "ResendConfirmationCode",
                    #"{"type": "InvalidParameterException", "message": "User is already confirmed."}"#)
                await flow.perform(.resendCode)
            } else {
                try await fixture.fail(
                    "ConfirmSignUp",
                    """
                    {"type": "NotAuthorizedException",
                     "message": "User cannot be confirmed. Current status is CONFIRMED"}
                    """)
                await flow.perform(.submit, ["code": "000000"])
            }
            #expect(flow.state.step == .done && session.state == .signedIn, "\(code(flow) ?? "")")
        }
    }

    @Test("After a wrong answer to a question of the pool's own, the sign-in begins anew, and says that it was refused")
    func wrongAnswer() async throws {
        try await withFlow(User(), .custom) { flow, session, _ in
            await flow.perform(.submit, ["name": "ann"])
            #expect(flow.state.step == .question(["question": "What is the word?"]))
            await flow.perform(.submit, ["answer": "no"])
            #expect(flow.state.step == .signIn && code(flow) == "cognito.refusedByFunction")
            await flow.perform(.submit, ["name": "ann"])
            await flow.perform(.submit, ["answer": "sesame"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("After a wrong code an authenticator app is to be set up still, with the same key")
    func wrongCodeOfAuthenticator() async throws {
        try await withFlow(User(steps: ["MFA_SETUP"])) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            let step = flow.state.step
            guard case .setUpAuthenticator = step else {
                Issue.record("\(step)")
                return
            }
            await flow.perform(.submit, ["code": "000000"])
            #expect(flow.state.step == step && code(flow) == "cognito.codeMismatch")
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("After a wrong code an account is to be confirmed still, and another code signs in")
    func wrongCodeOfAccount() async throws {
        try await withFlow(User(confirmed: false)) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            let step = flow.state.step
            await flow.perform(.submit, ["code": "000000"])
            #expect(flow.state.step == step && step != .signIn && code(flow) == "cognito.codeMismatch")
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("After a new password that the pool refuses another one is asked for, and signs in")
    func weakNewPassword() async throws {
        try await withFlow(User(steps: ["NEW_PASSWORD_REQUIRED"])) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            await flow.perform(.submit, ["newPassword": "short", "attribute.nickname": "a"])
            #expect(flow.state.step == .newPassword && code(flow) == "cognito.weakPassword")
            await flow.perform(.submit, ["newPassword": "a longer one", "attribute.nickname": "a"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }
}
