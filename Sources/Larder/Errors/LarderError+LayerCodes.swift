import LarderOperations
import LarderRecords

// The codes of the layers below, so that a program can match them: the article on errors says what each means.
extension LarderError.Code {
    private static let layers: Set<Substring> = [
        "larder", "records", "operations", "transport", "transfer", "object", "identity", "keys", "cognito",
    ]

    /// A stored code of one of the library's layers; nil for a code of a server.
    init?(ofLayer name: String) {
        let parts = name.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, Self.layers.contains(parts[0]) else { return nil }
        self.init(rawValue: name)
    }

    // MARK: RecordError

    /// `records.responseMalformed`: what the server sent is not JSON, or not a GraphQL response.
    public static let recordsResponseMalformed = Self(rawValue: RecordError.Code.responseMalformed.rawValue)
    /// `records.responseMismatch`: it is one, but not to this operation; with the path.
    public static let recordsResponseMismatch = Self(rawValue: RecordError.Code.responseMismatch.rawValue)
    /// `records.schemaMismatch`: the schema is not the server's, or not the one the cache was written with.
    public static let recordsSchemaMismatch = Self(rawValue: RecordError.Code.schemaMismatch.rawValue)
    /// `records.tooLarge`: larger or deeper than the format holds, or an answer of more bytes than `maximumAnswerSize`.
    public static let recordsTooLarge = Self(rawValue: RecordError.Code.tooLarge.rawValue)
    /// `records.damaged`: the cache is damaged; remove it and fetch again.
    public static let recordsDamaged = Self(rawValue: RecordError.Code.damaged.rawValue)
    /// `records.futureFormat`: a newer program wrote the cache.
    public static let recordsFutureFormat = Self(rawValue: RecordError.Code.futureFormat.rawValue)
    /// `records.olderFormat`: an older program wrote the cache; `larder-migrate up` makes it one of this format.
    public static let recordsOlderFormat = Self(rawValue: RecordError.Code.olderFormat.rawValue)
    /// `records.full`: the cache or the disk is full; nothing was changed.
    public static let recordsFull = Self(rawValue: RecordError.Code.full.rawValue)
    /// `records.notWritable`: read-only, or no permission.
    public static let recordsNotWritable = Self(rawValue: RecordError.Code.notWritable.rawValue)
    /// `records.protected`: the device keeps the cache's files locked; seen as `larder.protected`.
    public static let recordsProtected = Self(rawValue: RecordError.Code.protected.rawValue)
    /// `records.busy`: another process kept the cache past the deadline, which the message names where it is known; or
    /// this process's writer was busy that long: with a compaction, with other writes, or with the closure of an
    /// `update`.
    public static let recordsBusy = Self(rawValue: RecordError.Code.busy.rawValue)
    /// `records.closed`: the cache was closed.
    public static let recordsClosed = Self(rawValue: RecordError.Code.closed.rawValue)
    /// `records.suspended`: the cache is suspended; seen as `larder.suspended`.
    public static let recordsSuspended = Self(rawValue: RecordError.Code.suspended.rawValue)
    /// `records.alreadyOpen`: the cache is open already in this process; the message says where it was opened.
    public static let recordsAlreadyOpen = Self(rawValue: RecordError.Code.alreadyOpen.rawValue)
    /// `records.otherPartition`: the cache at the partition's place is another partition's: its folder was moved.
    public static let recordsOtherPartition = Self(rawValue: RecordError.Code.otherPartition.rawValue)
    /// `records.missing`: there is nothing to open, or it belongs to another partition.
    public static let recordsMissing = Self(rawValue: RecordError.Code.missing.rawValue)
    /// `records.systemLimit`: the process has as many files open, or as much memory or address space in use, as the
    /// system allows.
    public static let recordsSystemLimit = Self(rawValue: RecordError.Code.systemLimit.rawValue)
    /// `records.storage`: the layer below failed otherwise; see `cause`.
    public static let recordsStorage = Self(rawValue: RecordError.Code.storage.rawValue)

    // MARK: OperationsError

    /// `operations.damaged`: the file of queued mutations is damaged.
    public static let operationsDamaged = Self(rawValue: OperationsError.Code.damaged.rawValue)
    /// `operations.damagedRow`: a row of that file is damaged, and the others can be read; `larder check` names it.
    public static let operationsDamagedRow = Self(rawValue: OperationsError.Code.damagedRow.rawValue)
    /// `operations.foreign`: the file is no database, or another program's.
    public static let operationsForeign = Self(rawValue: OperationsError.Code.foreign.rawValue)
    /// `operations.newerFormat`: a newer version of the library wrote the file.
    public static let operationsNewerFormat = Self(rawValue: OperationsError.Code.newerFormat.rawValue)
    /// `operations.migrationChanged`: the database was made by another text of a migration; the message has both
    /// checksums.
    public static let operationsMigrationChanged = Self(rawValue: OperationsError.Code.migrationChanged.rawValue)
    /// `operations.migrationMissing`: the database's history lacks a migration between those it has.
    public static let operationsMigrationMissing = Self(rawValue: OperationsError.Code.migrationMissing.rawValue)
    /// `operations.migrationFailed`: a migration failed; nothing was changed.
    public static let operationsMigrationFailed = Self(rawValue: OperationsError.Code.migrationFailed.rawValue)
    /// `operations.migrationLocked`: another process migrates, backs up or restores the store, and did so past the
    /// deadline; the message names the process and the thread.
    public static let operationsMigrationLocked = Self(rawValue: OperationsError.Code.migrationLocked.rawValue)
    /// `operations.unknownSchema`: the tables are not those of any version, and no history can be put down for them;
    /// the message says what differs.
    public static let operationsUnknownSchema = Self(rawValue: OperationsError.Code.unknownSchema.rawValue)
    /// `operations.foreignBackup`: the backup is another store's; it can be restored into a new folder.
    public static let operationsForeignBackup = Self(rawValue: OperationsError.Code.foreignBackup.rawValue)
    /// `operations.damagedBackup`: the backup's files are not what its manifest says, or it is none.
    public static let operationsDamagedBackup = Self(rawValue: OperationsError.Code.damagedBackup.rawValue)
    /// `operations.pending`: migrations are yet to be applied, and the store was opened for reading only.
    public static let operationsPending = Self(rawValue: OperationsError.Code.pending.rawValue)
    /// `operations.missing`: there is nothing to be opened.
    public static let operationsMissing = Self(rawValue: OperationsError.Code.missing.rawValue)
    /// `operations.unfinished`: a crash has cut off a write, and the store was opened read-only; opening it for
    /// writing, as `larder-migrate up` does, takes back what the write left.
    public static let operationsUnfinished = Self(rawValue: OperationsError.Code.unfinished.rawValue)
    /// `operations.notWritable`: read-only, or no permission.
    public static let operationsNotWritable = Self(rawValue: OperationsError.Code.notWritable.rawValue)
    /// `operations.filesProtected`: the device keeps the store's files locked; seen as `larder.protected`.
    public static let operationsFilesProtected = Self(rawValue: OperationsError.Code.filesProtected.rawValue)
    /// `operations.full`: the disk is full; nothing was changed.
    public static let operationsFull = Self(rawValue: OperationsError.Code.full.rawValue)
    /// `operations.busy`: another program kept the database past the deadline.
    public static let operationsBusy = Self(rawValue: OperationsError.Code.busy.rawValue)
    /// `operations.closed`: the database was closed.
    public static let operationsClosed = Self(rawValue: OperationsError.Code.closed.rawValue)
    /// `operations.suspended`: the database is suspended; seen as `larder.suspended`.
    public static let operationsSuspended = Self(rawValue: OperationsError.Code.suspended.rawValue)
    /// `operations.unsupported`: the file system or SQLite cannot keep what is promised.
    public static let operationsUnsupported = Self(rawValue: OperationsError.Code.unsupported.rawValue)
    /// `operations.commitUnknown`: the disk failed during a commit, so that the mutation is queued or not; `mutation`
    /// has its id, whose status decides which, and queueing it again with the same id is safe.
    public static let operationsCommitUnknown = Self(rawValue: OperationsError.Code.commitUnknown.rawValue)
    /// `operations.storage`: SQLite or the file system failed otherwise; see `cause`.
    public static let operationsStorage = Self(rawValue: OperationsError.Code.storage.rawValue)
    /// `operations.notFound`: there is no such mutation, or it is settled.
    public static let operationsNotFound = Self(rawValue: OperationsError.Code.notFound.rawValue)
    /// `operations.wrongState`: the mutation is not in the state that the call is for; another caller may have been quicker.
    public static let operationsWrongState = Self(rawValue: OperationsError.Code.wrongState.rawValue)
    /// `operations.notItsTurn`: another mutation of its lane, or one it depends on, is before it.
    public static let operationsNotItsTurn = Self(rawValue: OperationsError.Code.notItsTurn.rawValue)
    /// `operations.expired`: the mutation's time is over.
    public static let operationsExpired = Self(rawValue: OperationsError.Code.expired.rawValue)
    /// `operations.duplicate`: the id or the idempotency key was used before.
    public static let operationsDuplicate = Self(rawValue: OperationsError.Code.duplicate.rawValue)
    /// `operations.unknownTemporaryID`: a temporary id that no mutation reserved, or whose mutation was discarded.
    public static let operationsUnknownTemporaryID = Self(rawValue: OperationsError.Code.unknownTemporaryID.rawValue)
    /// `operations.invalid`: an argument cannot be stored.
    public static let operationsInvalid = Self(rawValue: OperationsError.Code.invalid.rawValue)
    /// `operations.unsentWork`: work that has not reached the server would be lost, and the caller did not say that it
    /// may.
    public static let operationsUnsentWork = Self(rawValue: OperationsError.Code.unsentWork.rawValue)
    /// `operations.uploadsLeft`: the storage has parts of uploads that were given up, whose names would be lost; let
    /// them be aborted, or say that they may stay there.
    public static let operationsUploadsLeft = Self(rawValue: OperationsError.Code.uploadsLeft.rawValue)
    /// `operations.parked`: the partition is not the current one, and nothing is queued or sent there; seen as
    /// `larder.parked`.
    public static let operationsParked = Self(rawValue: OperationsError.Code.parked.rawValue)
    /// `operations.otherPartition`: another partition is the current one, and the caller did not say that it may be
    /// left.
    public static let operationsOtherPartition = Self(rawValue: OperationsError.Code.otherPartition.rawValue)
    /// `operations.unknownEnvironment`: no environment of this name is stored.
    public static let operationsUnknownEnvironment = Self(rawValue: OperationsError.Code.unknownEnvironment.rawValue)
    /// `operations.environmentChanged`: another API is stored under the environment's name; give the new one its own
    /// name, or say that it succeeds the old.
    public static let operationsEnvironmentChanged = Self(rawValue: OperationsError.Code.environmentChanged.rawValue)
    /// `operations.environmentInUse`: the environment is the current one, or has data; switch away, forget its data
    /// first.
    public static let operationsEnvironmentInUse = Self(rawValue: OperationsError.Code.environmentInUse.rawValue)
    /// `operations.occupied`: an environment is to take over another's data, and has some of the same user.
    public static let operationsOccupied = Self(rawValue: OperationsError.Code.occupied.rawValue)
    /// `operations.unknownPartition`: there is no such partition.
    public static let operationsUnknownPartition = Self(rawValue: OperationsError.Code.unknownPartition.rawValue)
    /// `operations.protected`: the environment is protected; repeat its name to do this nevertheless.
    public static let operationsProtected = Self(rawValue: OperationsError.Code.protected.rawValue)
    /// `operations.unknownWatcher`: there is no watcher of this name.
    public static let operationsUnknownWatcher = Self(rawValue: OperationsError.Code.unknownWatcher.rawValue)

    // MARK: TransportError

    /// `transport.unreachable`: no network, no such host, or refused.
    public static let transportUnreachable = Self(rawValue: TransportError.Code.unreachable.rawValue)
    /// `transport.timedOut`: the deadline passed.
    public static let transportTimedOut = Self(rawValue: TransportError.Code.timedOut.rawValue)
    /// `transport.cancelled`: the task was cancelled.
    public static let transportCancelled = Self(rawValue: TransportError.Code.cancelled.rawValue)
    /// `transport.interrupted`: the connection broke before the answer was whole.
    public static let transportInterrupted = Self(rawValue: TransportError.Code.interrupted.rawValue)
    /// `transport.insecure`: TLS could not be agreed, or the certificate is not trusted.
    public static let transportInsecure = Self(rawValue: TransportError.Code.insecure.rawValue)
    /// `transport.status`: an HTTP status other than success, a redirect included, and no GraphQL response;
    /// `retryAfter` may tell when to come back.
    public static let transportStatus = Self(rawValue: TransportError.Code.status.rawValue)
    /// `transport.unusableAnswer`: not JSON, or larger than allowed.
    public static let transportUnusableAnswer = Self(rawValue: TransportError.Code.unusableAnswer.rawValue)
    /// `transport.notPrepared`: the request could not be made, for a reason that passes: its headers could not be had,
    /// or the client is shut down.
    public static let transportNotPrepared = Self(rawValue: TransportError.Code.notPrepared.rawValue)
    /// `transport.notSignedIn`: the request needs a user, and none is signed in; nothing of it was sent.
    public static let transportNotSignedIn = Self(rawValue: TransportError.Code.notSignedIn.rawValue)
    /// `transport.unusableRequest`: a bad URL or header, a URL with a user or a password in it, a head of more than 32
    /// KiB, or a subscription over HTTP.
    public static let transportUnusableRequest = Self(rawValue: TransportError.Code.unusableRequest.rawValue)

    // MARK: ObjectError

    /// `object.unreachable`: the server could not be reached: no network, no such host, refused.
    public static let objectUnreachable = Self(rawValue: ObjectError.Code.unreachable.rawValue)
    /// `object.timedOut`: the deadline passed, or no bytes moved for too long.
    public static let objectTimedOut = Self(rawValue: ObjectError.Code.timedOut.rawValue)
    /// `object.interrupted`: the connection broke before the exchange was whole.
    public static let objectInterrupted = Self(rawValue: ObjectError.Code.interrupted.rawValue)
    /// `object.throttled`: the server asks to be left alone for a while: `SlowDown`, 429, 503.
    public static let objectThrottled = Self(rawValue: ObjectError.Code.throttled.rawValue)
    /// `object.serverFault`: the server failed: `InternalError`, 5xx.
    public static let objectServerFault = Self(rawValue: ObjectError.Code.serverFault.rawValue)
    /// `object.checksum`: what arrived is not what was sent: its checksum or its ETag is another.
    public static let objectChecksum = Self(rawValue: ObjectError.Code.checksum.rawValue)
    /// `object.wrongLength`: the server sent another length or another range than it was asked for or than it said.
    public static let objectWrongLength = Self(rawValue: ObjectError.Code.wrongLength.rawValue)
    /// `object.unusableAnswer`: the answer cannot be understood.
    public static let objectUnusableAnswer = Self(rawValue: ObjectError.Code.unusableAnswer.rawValue)
    /// `object.notPrepared`: the request could not be made, for a reason that passes: the client is shut down, a
    /// credential cannot be had.
    public static let objectNotPrepared = Self(rawValue: ObjectError.Code.notPrepared.rawValue)
    /// `object.expiredCredentials`: the credentials have ended: `ExpiredToken`.
    public static let objectExpiredCredentials = Self(rawValue: ObjectError.Code.expiredCredentials.rawValue)
    /// `object.invalidCredentials`: there are no credentials, or the server does not know them: `InvalidAccessKeyId`,
    /// `SignatureDoesNotMatch`.
    public static let objectInvalidCredentials = Self(rawValue: ObjectError.Code.invalidCredentials.rawValue)
    /// `object.accessDenied`: these credentials may not do this: `AccessDenied`.
    public static let objectAccessDenied = Self(rawValue: ObjectError.Code.accessDenied.rawValue)
    /// `object.notFound`: there is no such object.
    public static let objectNotFound = Self(rawValue: ObjectError.Code.notFound.rawValue)
    /// `object.noSuchBucket`: there is no such bucket.
    public static let objectNoSuchBucket = Self(rawValue: ObjectError.Code.noSuchBucket.rawValue)
    /// `object.noSuchUpload`: the upload in parts was completed or aborted.
    public static let objectNoSuchUpload = Self(rawValue: ObjectError.Code.noSuchUpload.rawValue)
    /// `object.changed`: the object has other bytes than the ETag says.
    public static let objectChanged = Self(rawValue: ObjectError.Code.changed.rawValue)
    /// `object.incomplete`: a part is missing, is another one, or is too small: `InvalidPart`, `InvalidPartOrder`,
    /// `EntityTooSmall`.
    public static let objectIncomplete = Self(rawValue: ObjectError.Code.incomplete.rawValue)
    /// `object.tooLarge`: it is larger than the storage takes: `EntityTooLarge`.
    public static let objectTooLarge = Self(rawValue: ObjectError.Code.tooLarge.rawValue)
    /// `object.wrongRegion`: the bucket is in a region that could not be found out.
    public static let objectWrongRegion = Self(rawValue: ObjectError.Code.wrongRegion.rawValue)
    /// `object.clockSkew`: the clock of this machine is wrong, and the server's could not be used instead.
    public static let objectClockSkew = Self(rawValue: ObjectError.Code.clockSkew.rawValue)
    /// `object.insecure`: TLS could not be agreed or the certificate was not trusted.
    public static let objectInsecure = Self(rawValue: ObjectError.Code.insecure.rawValue)
    /// `object.rejected`: the server refuses it for another reason, which `serverCode` names.
    public static let objectRejected = Self(rawValue: ObjectError.Code.rejected.rawValue)
    /// `object.unusableRequest`: it cannot be sent as it is: an empty key, a header that HTTP does not allow, a head of
    /// more than 32 KiB.
    public static let objectUnusableRequest = Self(rawValue: ObjectError.Code.unusableRequest.rawValue)
    /// `object.cancelled`: the calling task was cancelled.
    public static let objectCancelled = Self(rawValue: ObjectError.Code.cancelled.rawValue)
    /// `object.local`: the body could not be read, or the sink could not take what arrived; `cause` says why.
    public static let objectLocal = Self(rawValue: ObjectError.Code.local.rawValue)

    // MARK: KeyError

    /// `keys.locked`: the key store is locked; unlock it.
    public static let keysLocked = Self(rawValue: KeyError.Code.locked.rawValue)
    /// `keys.timedOut`: the key provider has not answered by the deadline; it may be locked.
    public static let keysTimedOut = Self(rawValue: KeyError.Code.timedOut.rawValue)
    /// `keys.cancelled`: the task was cancelled.
    public static let keysCancelled = Self(rawValue: KeyError.Code.cancelled.rawValue)
    /// `keys.missing`: there is no key; put it back, or sign in again.
    public static let keysMissing = Self(rawValue: KeyError.Code.missing.rawValue)
    /// `keys.unknownKey`: there are keys, and none of the id that was asked for; put it back, or sign in again.
    public static let keysUnknownKey = Self(rawValue: KeyError.Code.unknownKey.rawValue)
    /// `keys.unreadable`: the key cannot be read: no permission, or the key store failed.
    public static let keysUnreadable = Self(rawValue: KeyError.Code.unreadable.rawValue)
    /// `keys.exposed`: others may read the key file, with the command that mends it; or it lies in the store's folder.
    public static let keysExposed = Self(rawValue: KeyError.Code.exposed.rawValue)
    /// `keys.damaged`: what is kept as a key is damaged.
    public static let keysDamaged = Self(rawValue: KeyError.Code.damaged.rawValue)
    /// `keys.foreign`: what is kept where the key should be is something else.
    public static let keysForeign = Self(rawValue: KeyError.Code.foreign.rawValue)
    /// `keys.newerFormat`: a newer version of the library wrote the key.
    public static let keysNewerFormat = Self(rawValue: KeyError.Code.newerFormat.rawValue)
    /// `keys.notWritable`: the key cannot be written.
    public static let keysNotWritable = Self(rawValue: KeyError.Code.notWritable.rawValue)
    /// `keys.cannotRotate`: the key is changed by the program that gives it; the message says how.
    public static let keysCannotRotate = Self(rawValue: KeyError.Code.cannotRotate.rawValue)
    /// `keys.unsupported`: there is no such key store here.
    public static let keysUnsupported = Self(rawValue: KeyError.Code.unsupported.rawValue)
    /// `keys.invalid`: the bytes are no key.
    public static let keysInvalid = Self(rawValue: KeyError.Code.invalid.rawValue)

    // MARK: IdentityError

    /// `identity.unreachable`: the identity provider could not be asked; no user is signed out.
    public static let identityUnreachable = Self(rawValue: IdentityError.Code.unreachable.rawValue)
    /// `identity.throttled`: it asks to be left alone for a while; no user is signed out.
    public static let identityThrottled = Self(rawValue: IdentityError.Code.throttled.rawValue)
    /// `identity.userPoolRefused`: the user pool does not accept the tokens any more; sign in again.
    public static let identityUserPoolRefused = Self(rawValue: IdentityError.Code.userPoolRefused.rawValue)
    /// `identity.federatedRefused`: the identity pool gives no credentials for them; sign in again.
    public static let identityFederatedRefused = Self(rawValue: IdentityError.Code.federatedRefused.rawValue)
    /// `identity.cancelled`: the task was cancelled.
    public static let identityCancelled = Self(rawValue: IdentityError.Code.cancelled.rawValue)
    /// `identity.unusable`: the answer, or the configuration, cannot be used.
    public static let identityUnusable = Self(rawValue: IdentityError.Code.unusable.rawValue)
}
