public import Larder

/// A kind of error that AppSync, or a program's own resolvers, name in `errorType`.
///
/// AppSync puts the name of the data source before some (`DynamoDB:ConditionalCheckFailedException`), so a kind is
/// matched by what follows the last `:` or `#`.
///
/// ```swift
/// switch error {
/// case AppSyncErrorType.unauthorized: askForAccess()
/// case AppSyncErrorType(rawValue: "OutOfStock"): showOutOfStock()
/// default: show(error)
/// }
/// ```
public struct AppSyncErrorType: RawRepresentable, Hashable, Sendable {
    /// The name, without a data source's.
    public let rawValue: String

    /// A kind of this name, such as a program's own.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// A rule of the API forbids this to the user. New credentials do not help.
    public static let unauthorized = Self(rawValue: "Unauthorized")
    /// The proof of who asks was refused: it is missing, wrong or has ended.
    static let unauthorizedException = Self(rawValue: "UnauthorizedException")
    /// The item is at another version than the mutation was made for; `data` has the server's.
    public static let conflictUnhandled = Self(rawValue: "ConflictUnhandled")
    /// DynamoDB refused a write, since its condition does not hold.
    public static let conditionalCheckFailed = Self(rawValue: "ConditionalCheckFailedException")
    /// The request is not as the service wants it.
    static let badRequestException = Self(rawValue: "BadRequestException")
    /// AppSync failed.
    static let internalFailure = Self(rawValue: "InternalFailure")
    /// There are more requests or subscriptions than are allowed.
    static let limitExceeded = Self(rawValue: "LimitExceededError")
    /// The connection has as many subscriptions as are allowed.
    static let maximumSubscriptionsReached = Self(rawValue: "MaxSubscriptionsReachedError")

    /// Whether an `errorType` is of this kind.
    func matches(_ errorType: String?) -> Bool {
        guard let errorType else { return false }
        return errorType == rawValue
            || errorType.split(whereSeparator: { $0 == ":" || $0 == "#" }).last == rawValue[...]
    }

    /// Whether an error is of a kind.
    public static func ~= (kind: Self, error: GraphQLError) -> Bool { kind.matches(error.errorType) }
}
