import ArgumentParser
import Foundation
import LarderCommandLine
import LarderFiles
import LarderOperations

struct EnvList: Verb {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the environments, the current one marked by an asterisk.")
    static let name = "env list"

    @OptionGroup var store: StoreOptions

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        let (environments, partitions, current) = try await store.withDatabase(.reading) { database in
            let table = database.environments
            return (try table.list(), try table.partitions(), try table.current()?.partition?.environment)
        }
        if let name = DecidedEnvironment.saidByVariable, !environments.contains(where: { $0.name == name }) {
            output.warn(
                Failure(
                    OperationsError(
                        .unknownEnvironment,
                        "The store knows no environment \(name), which the variable \(DecidedEnvironment.variable) says"
                    )))
        }
        func count(_ environment: StoredEnvironment) -> Int {
            partitions.count { $0.environment == environment.name }
        }
        try output.result(
            .object([
                (
                    "environments",
                    .array(
                        environments.map { environment in
                            .object([
                                ("name", .string(environment.name)),
                                ("isCurrent", .boolean(environment.name == current)),
                                ("isProtected", .boolean(environment.isProtected)),
                                ("partitions", .int(count(environment))),
                            ])
                        })
                )
            ]),
            table: environments.map { environment in
                let isCurrent = environment.name == current
                return [
                    TableCell(isCurrent ? "*" : "-", isCurrent ? .good : .faint), TableCell(environment.name),
                    TableCell(environment.isProtected ? "protected" : "-", .warning),
                    TableCell(count(environment).counted("partition")),
                ]
            })
    }
}

struct EnvCurrent: Verb {
    static let configuration = CommandConfiguration(
        commandName: "current", abstract: "Names the environment that is worked with.",
        discussion: "The exit status is 3 where there is none, or one that the store does not know.")
    static let name = "env current"

    @OptionGroup var store: StoreOptions
    @OptionGroup var environment: EnvironmentOption

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        let (decided, current) = try await store.withDatabase(.reading) { database in
            let decided = try environment.decided(database)
            return (try decided.required(database).decided, try database.environments.current()?.partition)
        }
        let isCurrent = decided.name == current?.environment
        if !isCurrent {
            output.note("the store's current one is \(current?.environment ?? "none"); \(decided.origin.text) decides")
        }
        try output.result(
            .object([
                ("name", .string(decided.name)), ("origin", decided.origin.json),
                ("user", isCurrent ? current?.user.map(JSONText.string) ?? .null : .null),
                ("store", current?.environment.map(JSONText.string) ?? .null),
            ]),
            text: decided.name)
    }
}

struct EnvShow: Verb {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows what an environment is. Never a secret: the store has none of it.")
    static let name = "env show"

    @OptionGroup var store: StoreOptions
    @OptionGroup var environment: EnvironmentOption
    @Flag(help: "Also say who decides that it is this one.")
    var origin = false
    @ArgumentParser.Argument(help: ArgumentHelp("The environment, as --env.", valueName: "name"))
    var positional: String?

    func validate() throws {
        guard positional == nil || environment.name == nil else {
            throw ValidationError("Give either a name or --env.")
        }
    }

    func perform(_ output: Output) async throws {
        let store = try MigratedStore(store, output)
        var option = environment
        option.name = positional ?? option.name
        let (decided, found) = try await store.withDatabase(.reading) { database in
            try option.decided(database).required(database)
        }
        output.note("environment \(found.name)\(found.isProtected ? ", protected" : "")")
        var members: [(name: String, value: JSONText)] = [
            ("name", .string(found.name)), ("definition", .raw(found.definition)),
            (
                "fingerprints",
                .object([
                    ("identity", .string(found.fingerprints.identity)), ("data", .string(found.fingerprints.data)),
                    ("storage", .string(found.fingerprints.storage)),
                ])
            ),
            ("isProtected", .boolean(found.isProtected)),
        ]
        if origin { members.append(("origin", decided.origin.json)) }
        try output.result(
            .object(members),
            text: "\(found.name)\n\(String(decoding: found.definition, as: UTF8.self))"
                + (origin ? "\norigin: \(decided.origin.text)" : ""))
    }
}
