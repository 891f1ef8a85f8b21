public import Larder

extension CognitoUserPool {
    /// What came of a sign-up.
    public struct SignedUp: Sendable, Hashable {
        /// Whether the user can sign in at once; otherwise a code has to be confirmed first.
        public var isConfirmed: Bool
        /// The user's id.
        public var id: String?
        /// Where the code was sent.
        public var delivery: CodeDelivery
    }

    /// Makes an account. Fails now or succeeds now: it is never queued.
    ///
    /// - Parameters:
    ///   - user: The name of the user.
    ///   - password: The password of the new account.
    ///   - attributes: By Cognito's names, such as `email`.
    ///   - time: How long the call may take.
    /// - Throws: `.userExists`, `.weakPassword`, `.invalidInput`, `.refusedByFunction` and others.
    public func signUp(
        _ user: String, password: String, attributes: [String: String] = [:], within time: Duration? = nil
    ) async throws(CognitoError) -> SignedUp {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        let answer = try await service.call(
            "SignUp",
            clientMembers(for: user).with([
                "Username": .text(user), "Password": .text(password), "UserAttributes": .attributes(attributes),
            ]), deadline: deadline)
        return SignedUp(
            isConfirmed: answer.UserConfirmed ?? false, id: answer.UserSub,
            delivery: CodeDelivery(answer.CodeDeliveryDetails))
    }

    /// Confirms an account by the code that was sent.
    public func confirmSignUp(
        _ user: String, code: String, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call(
            "ConfirmSignUp",
            clientMembers(for: user).with(["Username": .text(user), "ConfirmationCode": .text(code)]),
            deadline: deadline)
    }

    /// Sends the code that confirms an account once more.
    public func resendConfirmation(
        of user: String, within time: Duration? = nil
    ) async throws(CognitoError) -> CodeDelivery {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        let answer = try await service.call(
            "ResendConfirmationCode", clientMembers(for: user).with(["Username": .text(user)]), deadline: deadline)
        return CodeDelivery(answer.CodeDeliveryDetails)
    }

    /// Sends a code with which the password can be set anew.
    public func forgotPassword(
        of user: String, within time: Duration? = nil
    ) async throws(CognitoError) -> CodeDelivery {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        let answer = try await service.call(
            "ForgotPassword", clientMembers(for: user).with(["Username": .text(user)]), deadline: deadline)
        return CodeDelivery(answer.CodeDeliveryDetails)
    }

    /// Sets the password anew, by the code that was sent.
    public func setForgottenPassword(
        of user: String, to password: String, code: String, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call(
            "ConfirmForgotPassword",
            clientMembers(for: user).with([
                "Username": .text(user), "ConfirmationCode": .text(code), "Password": .text(password),
            ]), deadline: deadline)
    }

    /// Changes the password of the user who is signed in.
    public func changePassword(
        from old: String, to new: String, _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call(
            "ChangePassword",
            [
                "AccessToken": .text(tokens.accessToken), "PreviousPassword": .text(old),
                "ProposedPassword": .text(new),
            ], deadline: deadline)
    }

    /// The attributes of the user who is signed in.
    public func attributes(
        _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) -> [String: String] {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        let answer = try await service.call(
            "GetUser", ["AccessToken": .text(tokens.accessToken)], deadline: deadline)
        return (answer.UserAttributes ?? []).reduce(into: [:]) { $0[$1.Name] = $1.Value ?? "" }
    }

    /// Changes attributes of the user who is signed in.
    public func changeAttributes(
        _ attributes: [String: String], _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call(
            "UpdateUserAttributes",
            ["AccessToken": .text(tokens.accessToken), "UserAttributes": .attributes(attributes)], deadline: deadline)
    }

    /// Deletes the account of the user who is signed in, for good.
    public func deleteUser(
        _ tokens: Credentials.UserPoolTokens, within time: Duration? = nil
    ) async throws(CognitoError) {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        _ = try await service.call("DeleteUser", ["AccessToken": .text(tokens.accessToken)], deadline: deadline)
    }
}

extension [String: CognitoValue] {
    fileprivate func with(_ members: [String: CognitoValue]) -> [String: CognitoValue] {
        merging(members) { $1 }
    }
}
