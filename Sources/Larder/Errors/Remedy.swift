extension LarderError {
    /// What the user of a program can do about a failure. A program switches over it, to show the right button.
    public enum Remedy: Sendable, Hashable {
        /// Try again, not before so long where the server has said so.
        case tryAgain(after: Duration?)
        /// Sign in, or sign in again.
        case signIn
        /// Connect to the network, and try again.
        case connect
        /// Free space on the device, and try again.
        case freeSpace
        /// Change what was entered or chosen.
        case correctInput
        /// Update the app.
        case updateApp
        /// Ask for help: the failure is the program's, the server's or the device's.
        case askForHelp
        /// Do nothing: nothing is wrong, or the work goes on by itself.
        case nothing
    }

    /// What the user can do. It follows from the code, from the status of HTTP, and from the kinds of the server's
    /// errors.
    public var remedy: Remedy { situation.remedy(after: retryAfter) }

    /// The situation that a user is in.
    var situation: Situation {
        if code == .serverErrors { return ofServerErrors }
        if code == .transportStatus, let status = (cause as? TransportError)?.status {
            return Situation(status: status)
        }
        // A request for which there were no credentials leaves a user where the session does.
        if [.transportNotPrepared, .objectNotPrepared].contains(code),
            let error = ((cause as? TransportError)?.cause ?? (cause as? ObjectError)?.cause) as? LarderError
        {
            return error.situation
        }
        return Situation.ofCodes[code] ?? .programFault
    }

    private var ofServerErrors: Situation {
        let kinds = Set(errors.map { $0.kind.map(ServerErrorKind.init) ?? .other })
        let order: [(ServerErrorKind, Situation)] = [
            (.notSignedIn, .sessionEnded), (.throttled, .throttled), (.conflict, .conflict), (.fault, .serverFault),
        ]
        return order.first { kinds.contains($0.0) }?.1
            ?? (cause as? TransportError)?.status.map(Situation.init(status:)) ?? .rejected
    }

    /// How long the server asks to wait, where it has said so.
    package var retryAfter: Duration? { (cause as? any RetryAfterError)?.retryAfter }
}

/// An error that may say how long to wait before the next attempt.
package protocol RetryAfterError: Error {
    var retryAfter: Duration? { get }
}

extension LarderError: RetryAfterError {}
extension TransportError: RetryAfterError {}
extension ObjectError: RetryAfterError {}
extension IdentityError: RetryAfterError {}

/// The situations in which a failure leaves a user. Many codes, which developers tell apart, lead to one situation.
package enum Situation: String, CaseIterable, Sendable {
    case offline, slow, throttled, serverFault, insecure, notSignedIn, sessionEnded, notAllowed, deviceFull
    case notLoaded, deleted, rejected, conflict, serverChanged, newerData, olderData, damaged, busy, deviceLocked
    case keysLocked, keyLost
    case fileMissing, fileUnreadable, fileChanged, fileExists, placeUnusable, damagedDownload, tooLarge, notFound
    case emptyField, wrongPassword, unconfirmed, newPassword, wrongCode, weakPassword, nameTaken, accountDisabled
    case wrongClock, cancelled, unfinished, expired, unsentWork, unknownOutcome, otherAccount, programFault

    init(status: Int) {
        self =
            switch status {
            case 401, 511: .sessionEnded
            case 403: .notAllowed
            case 404, 410: .serverChanged
            case 409, 412: .conflict
            case 408, 504: .slow
            case 413: .tooLarge
            case 425, 429, 503: .throttled
            case 500...: .serverFault
            case 400...: .rejected
            default: .serverChanged
            }
    }

    func remedy(after time: Duration?) -> LarderError.Remedy {
        switch self {
        case .slow, .throttled, .serverFault, .conflict, .busy, .deviceLocked, .keysLocked, .fileChanged,
            .damagedDownload, .expired,
            .unsentWork, .unknownOutcome:
            .tryAgain(after: time)
        case .notSignedIn, .sessionEnded, .keyLost: .signIn
        case .offline, .notLoaded: .connect
        case .deviceFull: .freeSpace
        case .emptyField, .wrongPassword, .unconfirmed, .newPassword, .wrongCode, .weakPassword, .nameTaken, .rejected,
            .fileMissing, .fileUnreadable, .fileExists, .placeUnusable, .tooLarge:
            .correctInput
        case .serverChanged, .newerData: .updateApp
        case .accountDisabled, .insecure, .notAllowed, .olderData, .damaged, .wrongClock, .programFault: .askForHelp
        case .deleted, .notFound, .cancelled, .unfinished, .otherAccount: .nothing
        }
    }

    /// The situation that each code leads to, except the codes whose situation depends on more.
    package static let ofCodes: [LarderError.Code: Situation] = {
        var situations: [LarderError.Code: Situation] = [:]
        for (situation, codes) in codes {
            for code in codes { situations[code] = situation }
        }
        for (situation, names) in cognito {
            for name in names {
                situations[LarderError.Code(rawValue: ["cognito", name].joined(separator: "."))] = situation
            }
        }
        return situations
    }()

    private static let codes: [Situation: [LarderError.Code]] = [
        .offline: [
            .transportUnreachable, .transportInterrupted, .objectUnreachable, .objectInterrupted,
            .identityUnreachable,
        ],
        .slow: [.transportTimedOut, .objectTimedOut, .timedOut],
        .throttled: [.objectThrottled, .identityThrottled],
        .serverFault: [
            .serverErrors, .paging, .transportStatus, .transportUnusableAnswer, .objectServerFault,
            .objectUnusableAnswer, .objectWrongLength, .objectIncomplete, .objectNoSuchUpload,
            .recordsResponseMalformed, .identityUnusable,
        ],
        .insecure: [.transportInsecure, .objectInsecure],
        .notSignedIn: [
            .notSignedIn, .transportNotSignedIn, .notInUserPool, .waitReleased, .sessionState,
            .objectInvalidCredentials,
        ],
        .sessionEnded: [.objectExpiredCredentials, .identityUserPoolRefused, .identityFederatedRefused],
        .notAllowed: [.objectAccessDenied, .operationsProtected],
        .deviceFull: [.recordsFull, .operationsFull, .diskFull],
        .notLoaded: [.miss, .recordsMissing],
        .deleted: [.deleted],
        .rejected: [.objectRejected, .operationsInvalid, .invalidTransfer],
        .conflict: [.operationsWrongState, .operationsNotItsTurn, .objectChanged],
        .serverChanged: [.recordsResponseMismatch, .recordsSchemaMismatch, .objectNoSuchBucket, .objectWrongRegion],
        .newerData: [.recordsFutureFormat, .operationsNewerFormat, .keysNewerFormat],
        .olderData: [
            .recordsOlderFormat, .operationsPending, .operationsMigrationChanged,
            .operationsMigrationMissing, .operationsMigrationFailed, .operationsUnknownSchema,
        ],
        .damaged: [
            .recordsDamaged, .operationsDamaged, .operationsDamagedRow, .operationsForeign,
            .operationsUnfinished, .operationsForeignBackup, .operationsDamagedBackup, .keysDamaged, .keysForeign,
            .recordsStorage, .operationsStorage, .recordsOtherPartition, .notRemoved, .backup,
        ],
        .busy: [
            .recordsBusy, .recordsSystemLimit, .operationsBusy, .operationsMigrationLocked, .lock,
            .transportNotPrepared, .objectNotPrepared, .recordsAlreadyOpen, .recordsClosed, .operationsClosed,
            .suspended, .recordsSuspended, .operationsSuspended,
        ],
        .deviceLocked: [.protected, .recordsProtected, .operationsFilesProtected],
        .keysLocked: [.keysLocked, .keysTimedOut],
        .keyLost: [.keysMissing, .keysUnknownKey],
        .fileMissing: [.sourceMissing],
        .fileUnreadable: [.sourceUnreadable, .sourceNotFile, .objectLocal],
        .fileChanged: [.sourceChanged, .otherContent],
        .fileExists: [.destinationExists],
        .placeUnusable: [.destinationUnusable],
        .damagedDownload: [.damagedDownload, .objectChecksum],
        .tooLarge: [.recordsTooLarge, .objectTooLarge],
        .notFound: [.objectNotFound, .unknownTransfer, .unknownMutation, .operationsNotFound, .operationsMissing],
        .wrongClock: [.objectClockSkew],
        .cancelled: [
            .cancelled, .cancelledTransfer, .transportCancelled, .objectCancelled, .keysCancelled,
            .identityCancelled,
        ],
        .unfinished: [.unsettled, .unfinishedTransfer, .operationsDuplicate],
        .expired: [.expiredTransfer, .operationsExpired],
        .unsentWork: [.operationsUnsentWork, .operationsUploadsLeft],
        .unknownOutcome: [.operationsCommitUnknown, .restoredTransfer],
        .otherAccount: [.parked, .operationsParked, .operationsOtherPartition],
        .programFault: [
            .schema, .syntax, .operation, .variables, .data, .noTransport, .environment, .noEnvironment,
            .unknownUpdater, .notRunnable, .noStorage, .noIdentityProvider, .noUserPool, .noIdentityPool,
            .recordsNotWritable,
            .operationsNotWritable,
            .operationsUnsupported, .operationsUnknownTemporaryID, .operationsUnknownEnvironment,
            .operationsEnvironmentChanged, .operationsEnvironmentInUse, .operationsOccupied,
            .operationsUnknownPartition, .operationsUnknownWatcher, .transportUnusableRequest,
            .objectUnusableRequest, .keysUnreadable, .keysExposed, .keysNotWritable, .keysCannotRotate,
            .keysUnsupported, .keysInvalid,
        ],
    ]

    /// Codes of Cognito, whose errors are a layer's above this one.
    private static let cognito: [Situation: [String]] = [
        .offline: ["unreachable"], .throttled: ["throttled", "tooManyAttempts"], .cancelled: ["cancelled"],
        .sessionEnded: ["signInAgain", "federatedRefused"], .wrongPassword: ["wrongCredentials", "userNotFound"],
        .emptyField: ["emptyField"], .unconfirmed: ["userNotConfirmed"], .newPassword: ["passwordResetRequired"],
        .wrongCode: ["codeMismatch", "codeExpired"], .weakPassword: ["weakPassword", "passwordUsedBefore"],
        .nameTaken: ["userExists", "aliasExists"], .accountDisabled: ["userDisabled"],
        .rejected: ["invalidInput", "refusedByFunction", "rejected"], .serverFault: ["unusableAnswer"],
        .serverChanged: ["unknownChallenge"],
        .programFault: ["flowNotEnabled", "clientSecret", "configuration", "foreignToken"],
    ]
}
