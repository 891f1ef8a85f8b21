import Larder

/// What S3's error codes mean to the caller.
///
/// The codes are those of "Error responses" in the Amazon S3 API Reference, and of storages that speak alike.
enum S3ErrorCode {
    /// The kind of failure that a code is; where there is none, or one that says no more than its status does, that the
    /// status is.
    static func code(_ serverCode: String?, status: Int) -> ObjectError.Code {
        if let serverCode, let known = codes[serverCode] { return known }
        switch status {
        case 301, 302, 308: return .wrongRegion
        // Sent for a while after a bucket was made, until its name is known everywhere.
        case 307: return .serverFault
        case 401: return .invalidCredentials
        case 403: return .accessDenied
        case 404: return .notFound
        case 408: return .timedOut
        // What a storage has not learned yet, it does not learn while it is asked again.
        case 501: return .rejected
        case 409, 500..<503, 504..<600: return .serverFault
        case 412: return .changed
        case 413: return .tooLarge
        case 416: return .wrongLength
        case 429, 503: return .throttled
        case 200..<300: return .serverFault
        default: return .rejected
        }
    }

    private static let codes: [String: ObjectError.Code] = [
        "SlowDown": .throttled, "ServiceUnavailable": .throttled, "Busy": .throttled, "Throttling": .throttled,
        "ThrottlingException": .throttled, "RequestLimitExceeded": .throttled, "TooManyRequests": .throttled,
        "BandwidthLimitExceeded": .throttled, "RequestThrottled": .throttled,

        "InternalError": .serverFault, "OperationAborted": .serverFault, "ConditionalRequestConflict": .serverFault,
        "RequestTimeout": .timedOut, "IncompleteBody": .interrupted,
        "BadDigest": .checksum, "InvalidDigest": .checksum, "XAmzContentSHA256Mismatch": .checksum,
        "XAmzContentChecksumMismatch": .checksum,

        "ExpiredToken": .expiredCredentials, "ExpiredTokenException": .expiredCredentials,
        "TokenRefreshRequired": .expiredCredentials,
        "InvalidAccessKeyId": .invalidCredentials, "SignatureDoesNotMatch": .invalidCredentials,
        "InvalidToken": .invalidCredentials, "InvalidSecurity": .invalidCredentials,
        "InvalidClientTokenId": .invalidCredentials, "MissingSecurityHeader": .invalidCredentials,
        "UnrecognizedClientException": .invalidCredentials, "NotSignedUp": .invalidCredentials,

        "AccessDenied": .accessDenied, "AllAccessDisabled": .accessDenied, "AccountProblem": .accessDenied,
        "NoSuchKey": .notFound, "NoSuchVersion": .notFound, "NoSuchBucket": .noSuchBucket,
        "NoSuchUpload": .noSuchUpload, "PreconditionFailed": .changed, "InvalidRange": .wrongLength,
        "InvalidPart": .incomplete, "InvalidPartOrder": .incomplete, "EntityTooSmall": .incomplete,
        "EntityTooLarge": .tooLarge,
        "PermanentRedirect": .wrongRegion, "AuthorizationHeaderMalformed": .wrongRegion,
        "IllegalLocationConstraintException": .wrongRegion,
        "TemporaryRedirect": .serverFault, "RequestTimeTooSkewed": .clockSkew,
        "InvalidObjectState": .rejected, "InvalidRequest": .rejected, "InvalidArgument": .rejected,
        "NotImplemented": .rejected,
    ]
}
