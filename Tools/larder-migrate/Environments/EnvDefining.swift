import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

struct EnvAdd: Verb {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Makes an environment known, or changes what is known of it.",
        discussion: """
            It is read from a file of Larder's own, awsconfiguration.json, amplifyconfiguration.json or \
            amplify_outputs.json by --from, or said by --url. A name that is another backend's is refused, unless \
            --succeeds names itself. Secrets in the file are not kept. With --succeeds all partitions of the other \
            environment become this one's, with what waits in them: of a protected one --confirm wants its name as well.
            """)
    static let name = "env add"

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var confirmation: Confirmation
    @Option(help: ArgumentHelp("A configuration file.", valueName: "file"))
    var from: String?
    @Option(help: ArgumentHelp("Which GraphQL API of the file, where it has several.", valueName: "name"))
    var api: String?
    @Option(help: ArgumentHelp("Where the API is, without a file.", valueName: "url"))
    var url: String?
    @Option(help: ArgumentHelp("The API's region, beside --url.", valueName: "region"))
    var region: String?
    @Option(help: ArgumentHelp("The environment whose data becomes this one's.", valueName: "name"))
    var succeeds: String?
    @Flag(name: .customLong("succeeds-unnamed"), help: "The data of a program that named no environment becomes its.")
    var succeedsUnnamed = false
    @Flag(name: .customLong("protected"), help: "Destructive commands want its name repeated.")
    var isProtected = false
    @ArgumentParser.Argument(help: ArgumentHelp("Its name.", valueName: "name"))
    var environment: String

    func validate() throws {
        guard (from == nil) != (url == nil) else { throw ValidationError("Give either --from or --url.") }
        guard api == nil || from != nil else { throw ValidationError("--api goes with --from.") }
        guard region == nil || url != nil else { throw ValidationError("--region goes with --url.") }
        guard succeeds == nil || !succeedsUnnamed else {
            throw ValidationError("Give either --succeeds or --succeeds-unnamed.")
        }
    }

    func perform(_ output: Output) async throws {
        try BackendEnvironment.validate(name: environment)
        let draft = try definition().draft
        let store = try MigratedStore(store, timeout: lock.duration(), mayBeNew: true, output)
        try store.requireConfirmed(confirmation, of: environment, to: "change it", output)
        if case .environment(let predecessor) = draft.predecessor, predecessor != environment {
            try store.requireConfirmed(confirmation, of: predecessor, to: "take over its data", output)
        }
        try store.makeDatabase()
        let taken = try await store.withLock(for: "env add") { _ in
            try await store.withDatabase(.writing) {
                try await put(draft, in: $0.environments(of: store.url, store.options))
            }
        }
        let from: String? =
            switch draft.predecessor {
            case nil, .environment(environment): nil
            case .environment(let name): name
            case .unnamed: "the program that named none"
            }
        try output.result(
            .object([
                ("name", .string(draft.name)), ("isProtected", .boolean(draft.isProtected)),
                (
                    "taken",
                    .array(
                        taken.map { partition in
                            .object([
                                ("partition", .string(partition.name)),
                                ("user", partition.user.map(JSONText.string) ?? .null),
                            ])
                        })
                ),
            ]),
            text: "added \(draft.name)"
                + (from.map { "; it took over \(taken.count.counted("partition")) of \($0)" } ?? ""))
    }

    /// - Returns: The partitions that were another's before.
    private func put(_ draft: EnvironmentDraft, in table: EnvironmentTable) async throws -> [StoredPartition] {
        // A file goes on saying so when the other one is long gone.
        if case .environment(let predecessor) = draft.predecessor, predecessor != draft.name,
            try table.find(predecessor) == nil, try succeeds != nil || table.find(draft.name) == nil
        {
            throw OperationsError(
                .unknownEnvironment,
                "No environment is named \(predecessor), which \(draft.name) is to succeed; "
                    + "larder-migrate env list names the environments")
        }
        let before = Set(try table.partitions().filter { $0.environment == draft.name }.map(\.name))
        try await table.put(draft, now: Date())
        return try table.partitions().filter { $0.environment == draft.name && !before.contains($0.name) }
    }

    private func definition() throws -> BackendEnvironment {
        var found: BackendEnvironment
        if let from {
            found = try BackendEnvironment.read(contentsOf: URL(filePath: from), name: environment, api: api)
        } else {
            let place = try URLArgument.http(
                url ?? "", "The URL", remedy: "programs say in a header what authorizes their requests.")
            found = BackendEnvironment(name: environment, api: .init(url: place, region: region))
        }
        if let succeeds { found.predecessor = .environment(succeeds) }
        if succeedsUnnamed { found.predecessor = .unnamed }
        if isProtected { found.isProtected = true }
        return found
    }
}

struct EnvRemove: Verb {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Forgets where a backend is. Refused where the store has data of it.",
        discussion: "env forget destroys the data as well.")
    static let name = "env remove"

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var confirmation: Confirmation
    @ArgumentParser.Argument(help: ArgumentHelp("Its name.", valueName: "name"))
    var environment: String

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        try store.requireConfirmed(confirmation, of: environment, to: "remove it", output)
        try await store.withLock(for: "env remove") { _ in
            try await store.withDatabase(.writing) { try await $0.environments.remove(environment) }
        }
        try output.result(.object([("name", .string(environment))]), text: "removed \(environment)")
    }
}

struct EnvForget: Verb {
    static let configuration = CommandConfiguration(
        commandName: "forget", abstract: "Destroys all that the store has of an environment. Wants --confirm NAME.",
        discussion: """
            Keys first, then caches, then mutations, watchers and the rest. The current one is refused, and so is one \
            whose mutations or uploads have not reached the server, or that has uploads in parts at the storage that \
            were given up, unless --discard says that they may be lost. It is told then what to abort at the storage. \
            Backups keep what they have.
            """)
    static let name = "env forget"

    @OptionGroup var store: StoreOptions
    @OptionGroup var lock: LockOptions
    @OptionGroup var confirmation: Confirmation
    @Flag(help: "Mutations and uploads that have not reached the server are lost.")
    var discard = false
    @ArgumentParser.Argument(help: ArgumentHelp("Its name.", valueName: "name"))
    var environment: String

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, timeout: lock.duration(), output)
        guard confirmation.names.contains(environment) else {
            throw Failure(
                .notConfirmed, .refused, "Forgetting destroys data; say --confirm \(environment)",
                details: [("environment", .string(environment))])
        }
        output.note("environment \(environment)")
        let report = try await store.withLock(for: "env forget") { lock in
            try await store.withDatabase(.writing) { database in
                try await EnvironmentForgetting.forget(
                    environment, in: store.url, database, discarding: discard, holding: lock, options: store.options)
            }
        }
        try output.result(
            .object([
                ("name", .string(environment)), ("partitions", .strings(report.partitions)),
                ("mutations", .int(report.mutations)), ("uploads", .array(report.uploads.map(\.json))),
            ]),
            text: "forgot \(environment), \(report.partitions.count.counted("partition")) and "
                + report.mutations.counted("mutation"))
        for upload in report.uploads { output.note(upload.text) }
    }
}

extension LeftUpload {
    fileprivate var json: JSONText {
        .object([
            ("storage", storage.map(JSONText.string) ?? .null), ("bucket", .string(bucket)), ("key", .string(key)),
            ("region", region.map(JSONText.string) ?? .null),
            ("upload", upload.map(JSONText.string) ?? .null),
        ])
    }

    fileprivate var text: String {
        let name = upload.map { "the upload \($0)" } ?? "perhaps an upload whose name did not arrive"
        return "the storage\(storage.map { " \($0)" } ?? "") has parts of \(bucket)/\(key): \(name); abort it there"
    }
}
