import Larder

extension Failure {
    /// What to do next, in one line: the message says what is wrong, and often what mends it.
    ///
    /// - Parameters:
    ///   - tool: The tool's name.
    ///   - verb: The verb's, with that of the verb it belongs to.
    package func hint(tool: String, verb: String) -> String {
        advice ?? Self.hint(of: code, tool: tool, verb: verb) ?? ofExit
    }

    /// Nil of a code that no tool knows.
    package static func hint(of code: String, tool: String, verb: String) -> String? {
        ofTools(code, verb == tool ? tool : "\(tool) \(verb)", verb) ?? ofImport(code) ?? ofLayer(code)
            ?? Situation.ofCodes[.init(rawValue: code)].map(\.hint)
    }

    /// Of the codes that are the tools' own, or where a verb has a better answer than the layer that failed.
    private static func ofTools(_ code: String, _ command: String, _ verb: String) -> String? {
        switch code {
        case Code.usage.rawValue: "'\(command) --help' describes the arguments"
        case Code.file.rawValue: "'\(command) --help' says what the file must hold; nothing was changed"
        case Code.noStore.rawValue: "--store or LARDER_STORE names the folder that the program gives to Store.open"
        case Code.notAStore.rawValue: "a store is made in a folder that is new or empty; nothing was changed"
        case Code.notConfirmed.rawValue:
            "nothing was changed; where it is meant, add --write, or the --confirm that the message names"
        case Code.mayBeCopy.rawValue:
            "--device-tokens names the folder of the program's FileDeviceTokens; --not-a-copy sends without looking"
        case Code.findings.rawValue:
            "'larder-migrate repair' shows what can be saved, and 'larder-migrate backup list' what can be restored"
        case Code.output.rawValue: "make room where standard output goes; what the verb changes was changed"
        case Code.unexpected.rawValue: "run it again; if it fails again, report it with the message"
        case Code.remaining.rawValue:
            "what is queued stays queued: run it again; --give-up-after says for how long to wait"
        case Code.noBackup.rawValue: "'larder-migrate backup' makes one; --backups names the folder that has them"
        case "command.unknownObject": "'larder ls' lists the cache keys; 'larder fetch' asks a server"
        case "command.unknownMutation": "'larder mutations' lists the ids"
        case "command.unknownTransfer": "'larder transfers' lists the ids"
        case "command.unknownPin": "'larder info' lists the pins of a partition, and 'larder env' the partitions"
        case "command.decidedElsewhere": "unset LARDER_ENV, or set it to the environment that is meant"
        case "larder.miss" where ["query", "fetch"].contains(verb):
            "'larder fetch' asks a server; 'larder query' prints with --partial what is known, and with --stale what is "
                + "older than it may be"
        case "command.noEnvironment", "larder.noEnvironment", "operations.unknownEnvironment",
            "operations.unknownPartition":
            "'larder env' lists the environments and partitions of the store; 'larder-migrate env use NAME' chooses one"
        default: nil
        }
    }

    private static func ofImport(_ code: String) -> String? {
        switch code {
        case "import.missing", "import.foreign", "import.ambiguous":
            "--from names the library, --prefix its client's prefix, and the last argument its folder or file"
        case "import.damaged", "import.unreadable", "import.tooLarge":
            "copy the other library's files anew, with the user's right to read them; nothing was changed"
        case "import.busy": "close the program that writes the other library's files, and try again"
        case "import.store": "'larder-migrate status' looks at the store, and --schema names the schema's file"
        default: nil
        }
    }

    /// Of codes whose situation tells a program's user nothing that an operator can use.
    private static func ofLayer(_ code: String) -> String? {
        switch code {
        case "larder.schema": "--schema names the schema's file; without it the schema that the store holds is used"
        case "larder.syntax", "larder.operation":
            "--operation names the file and --name one of its operations; --schema replaces the store's schema"
        case "larder.variables": "--variables names a file with a JSON object that has the operation's variables"
        case "larder.data": "the JSON has to be of the form that the operation's fields have"
        case "larder.noTransport": "--endpoint names the server"
        case "larder.environment":
            "the message says what to put right in the definition; 'larder-migrate env show NAME' prints it"
        case "larder.unknownUpdater", "larder.notRunnable", "larder.noStorage", "transfer.noStorage":
            "the store's program has what is missing here, and carries it out; --object-storage names a storage"
        case "larder.noIdentityProvider", "larder.noUserPool", "larder.noIdentityPool", "cognito.configuration":
            "'larder-migrate env show NAME' prints the pools of an environment; 'env add NAME --from FILE' adds them"
        case "records.notWritable", "operations.notWritable", "keys.unreadable", "keys.notWritable":
            "give this user access to the store's folder and its files; nothing was changed"
        case "operations.unsupported": "put the store on a local disk: the file system has to keep locks and syncs"
        case "operations.unknownTemporaryID": "'larder mutations show ID' has the variables that name it"
        case "operations.environmentChanged":
            "'larder-migrate env show NAME' prints what is stored; --succeeds NAME takes over its data"
        case "operations.environmentInUse":
            "'larder-migrate env use' enters another one; 'env forget NAME --confirm NAME' destroys the data of one"
        case "operations.occupied":
            "'larder env' lists whose the partitions are; 'larder-migrate env forget' removes one"
        case "operations.unknownWatcher": "'larder watchers' lists the names"
        case "operations.missing": "'larder ingest', 'fetch' or 'enqueue' makes what is missing"
        case "operations.unfinished": "'larder-migrate up' takes back what the crash has left"
        case "operations.foreignBackup": "--store names a new folder to restore it into; nothing was changed"
        case "operations.damagedBackup": "'larder-migrate backup verify' tells which backups are whole"
        case "transport.notSignedIn": "--auth, --header-from and --header say who asks"
        case "transport.unusableRequest", "object.unusableRequest":
            "the endpoint, the headers and the keys have to be ones that HTTP can carry"
        case "object.invalidCredentials", "object.expiredCredentials":
            "the keys come from AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        case "keys.exposed": "the message has the command that mends it"
        case "keys.cannotRotate": "change the key where the store's program takes it from"
        case "keys.unsupported", "keys.invalid", "keys.damaged", "keys.foreign":
            "put the key back from where it is kept, or sign in again: 'larder sign-in'"
        case "cognito.flowNotEnabled": "--flow takes another way to sign in, which the pool's client allows"
        case "cognito.clientSecret": "LARDER_CLIENT_SECRET has the secret of the pool's client"
        case "cognito.foreignToken": "sign in to the user pool of the partition's environment: 'larder env' lists it"
        default: nil
        }
    }

    private var ofExit: String {
        switch exit {
        case .damaged: Situation.damaged.hint
        case .miss: "'larder info' tells what the store holds"
        case .usage: "--help describes the arguments; nothing was changed"
        case .refused: "nothing was changed"
        case .success, .failure: Situation.programFault.hint
        }
    }
}

extension Situation {
    /// What an operator can do.
    fileprivate var hint: String {
        switch self {
        case .offline: "look at --endpoint and at the network; what is queued stays queued"
        case .slow: "--timeout gives it longer; what is queued stays queued"
        case .throttled: "wait, and try again; what is queued stays queued"
        case .serverFault: "look at --endpoint, and have the server put right; what is queued stays queued"
        case .insecure: "the endpoint needs a certificate of its name that this system trusts"
        case .notSignedIn, .sessionEnded: "'larder sign-in' signs the user in; --auth and --header-from say who asks"
        case .notAllowed: "use keys, or a user, with the right to do it"
        case .deviceFull: "free space on the disk; 'larder gc --write' and then 'larder compact' make the cache smaller"
        case .notLoaded: "'larder fetch' and 'larder ingest' store something; 'larder env' lists the partitions"
        case .deleted: "'larder fetch --policy networkOnly' asks the server whether it is there again"
        case .rejected:
            "what was asked has to change; 'larder mutations edit ID --variables FILE --write' changes a "
                + "mutation that was set aside"
        case .conflict: "'larder mutations show ID' and 'larder transfers show ID' tell the state that it is in"
        case .serverChanged: "--schema has to name the server's schema, and --endpoint that server"
        case .newerData: "a newer version wrote it: install that version"
        case .olderData: "'larder-migrate status' and 'plan' show what is to be migrated, and 'up' does it"
        case .damaged:
            "'larder check' names the damage; 'larder-migrate repair' and 'restore' bring back what can be"
        case .busy: "try again when the process that has it has ended, or lets go of it"
        case .deviceLocked: "unlock the device, and try again"
        case .keysLocked: "unlock the key store, and try again"
        case .keyLost: "put the key back, or sign in again: 'larder sign-in'"
        case .fileMissing, .fileUnreadable, .fileChanged, .fileExists, .placeUnusable, .damagedDownload, .tooLarge:
            "'larder transfers show ID' names the file; 'larder transfers retry ID --write' tries it again"
        case .notFound: "'larder mutations' and 'larder transfers' list what is known"
        case .emptyField, .wrongPassword, .unconfirmed, .newPassword, .wrongCode, .weakPassword, .nameTaken:
            "'larder sign-in' asks again; 'larder sign-up' makes another account"
        case .accountDisabled: "whoever administers the user pool can enable the account again"
        case .wrongClock: "set the clock of this machine"
        case .cancelled: "nothing is wrong; run it again to go on"
        case .unfinished: "it goes on; 'larder mutations' and 'larder transfers' tell how far it is"
        case .expired: "its time is over; queue it anew where it is still wanted"
        case .unsentWork:
            "'larder mutations' and 'larder transfers' list it; 'larder run' carries it out"
        case .unknownOutcome: "'larder mutations' tells whether it was queued"
        case .otherAccount:
            "'larder env' marks the current partition; 'larder-migrate env use NAME' enters another environment"
        case .programFault:
            "the message says what is wrong; the article on errors explains the codes that --json prints"
        }
    }
}
