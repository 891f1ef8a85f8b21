import Larder
import LarderHTTP

extension CognitoError {
    /// What Cognito's name for an error means.
    init(serverCode: String, message said: String?, status: Int, retryAfter: Duration?) {
        let said = String((said ?? "").prefix(500))
        let known = Self.codes[serverCode]
        var code = known ?? (status >= 500 ? .unreachable : status == 429 ? .throttled : .rejected)
        // Some names stand for several things, which the message alone tells apart.
        let text = said.lowercased()
        switch serverCode {
        case "NotAuthorizedException":
            if text.contains("disabled") {
                code = .userDisabled
            } else if text.contains("secret") {
                code = .clientSecret
            } else if text.contains("session") || text.contains("token") {
                code = .signInAgain
            } else if text.contains("attempts exceeded") {
                code = .tooManyAttempts
            }
        case "InvalidParameterException"
        where text.contains("flow not enabled") || text.contains("not enabled for the client"):
            code = .flowNotEnabled
        default: break
        }
        self.init(
            code, said.isEmpty ? "Cognito answered \(serverCode.prefix(100))." : said, serverCode: serverCode,
            retryAfter: retryAfter)
    }

    /// Whether the account was not confirmed because it is already. The message alone says so.
    var isOfConfirmedAccount: Bool {
        let text = message.lowercased()
        return ["NotAuthorizedException", "InvalidParameterException"].contains(serverCode)
            && (text.contains("status is confirmed") || text.contains("already confirmed"))
    }

    private static let codes: [String: Code] = [
        "NotAuthorizedException": .wrongCredentials, "UserNotFoundException": .userNotFound,
        "UserNotConfirmedException": .userNotConfirmed, "PasswordResetRequiredException": .passwordResetRequired,
        "RefreshTokenReuseException": .signInAgain,
        "CodeMismatchException": .codeMismatch, "EnableSoftwareTokenMFAException": .codeMismatch,
        "ExpiredCodeException": .codeExpired, "InvalidPasswordException": .weakPassword,
        "PasswordHistoryPolicyViolationException": .passwordUsedBefore, "UsernameExistsException": .userExists,
        "AliasExistsException": .aliasExists, "TooManyFailedAttemptsException": .tooManyAttempts,
        "UserLambdaValidationException": .refusedByFunction, "UnexpectedLambdaException": .refusedByFunction,
        "InvalidLambdaResponseException": .refusedByFunction,
        "TooManyRequestsException": .throttled, "LimitExceededException": .throttled, "ThrottlingException": .throttled,
        "InternalErrorException": .unreachable, "ExternalServiceException": .unreachable,
        "ConcurrentModificationException": .unreachable, "ServiceUnavailableException": .unreachable,
        "CodeDeliveryFailureException": .unreachable,
        "InvalidParameterException": .invalidInput, "ResourceNotFoundException": .configuration,
        "ResourceConflictException": .configuration, "UnsupportedOperationException": .configuration,
        "InvalidUserPoolConfigurationException": .configuration,
        "InvalidSmsRoleAccessPolicyException": .configuration,
        "InvalidSmsRoleTrustRelationshipException": .configuration, "MFAMethodNotFoundException": .configuration,
        "SoftwareTokenMFANotFoundException": .configuration, "FeatureUnavailableInTierException": .configuration,
        "UnauthorizedException": .configuration, "UnsupportedTokenTypeException": .configuration,
        "InvalidIdentityPoolConfigurationException": .configuration,
    ]

    /// An answer without an error's name.
    init(ofStatus status: Int, else code: Code = .rejected, _ message: String, retryAfter: Duration?) {
        self.init(Code(ofStatus: status) ?? code, message, retryAfter: retryAfter)
    }

    /// An exchange that came to no answer.
    init(_ error: TransportError) {
        switch error.code {
        case .cancelled: self.init(.cancelled, "The task was cancelled.", cause: error)
        case .unusableAnswer, .unusableRequest: self.init(.unusableAnswer, error.message, cause: error)
        case .timedOut: self.init(.unreachable, "Cognito had not answered by the deadline.", cause: error)
        default:
            self.init(
                .unreachable, "Cognito could not be reached: \(error.message)", retryAfter: error.retryAfter,
                cause: error)
        }
    }

    /// What it means for a session that wanted new credentials. Only what says so ends one.
    func identityError(refusal: IdentityError.Code) -> IdentityError {
        let code: IdentityError.Code =
            switch self.code {
            case .wrongCredentials, .signInAgain, .userNotFound, .userNotConfirmed, .passwordResetRequired,
                .userDisabled, .federatedRefused:
                refusal
            case .unreachable: .unreachable
            case .throttled, .tooManyAttempts: .throttled
            case .cancelled: .cancelled
            default: .unusable
            }
        return IdentityError(code, message, retryAfter: retryAfter, cause: self)
    }
}

extension CognitoError.Code {
    /// What a status of HTTP says of a server; nil where it says something of the request.
    init?(ofStatus status: Int) {
        switch status {
        case 429: self = .throttled
        case 500...: self = .unreachable
        default: return nil
        }
    }
}
