import ArgumentParser
import Larder
import LarderCommandLine
import LarderOperations

/// What verbs take that may destroy something of a protected environment.
struct Confirmation: ParsableArguments {
    @Option(
        name: .customLong("confirm"),
        help: ArgumentHelp(
            "The name of the environment, once more, where it is protected. Repeat the option where it is about "
                + "several.",
            valueName: "name"))
    var names: [String] = []
}

extension MigratedStore {
    /// Refuses to go on with a protected environment whose name was not repeated.
    ///
    /// - Parameter environment: The one concerned; nil for the current one, which was named.
    func requireConfirmed(
        _ confirmation: Confirmation, of environment: String? = nil, to what: String, _ output: Output
    ) throws {
        let concerned = try withEnvironments { table in
            try (environment ?? table.current()?.partition?.environment).flatMap { try table.find($0) }
        }
        guard let concerned = concerned ?? nil else { return }
        if environment != nil {
            output.note("environment \(concerned.name)\(concerned.isProtected ? ", protected" : "")")
        }
        guard concerned.isProtected, !confirmation.names.contains(concerned.name) else { return }
        throw Failure(
            .notConfirmed, .refused,
            "The environment \(concerned.name) is protected; to \(what), say --confirm \(concerned.name)",
            details: [("environment", .string(concerned.name))])
    }

    /// Runs `body` with the environments that the store knows, for reading; nil where it has none of the tables.
    func withEnvironments<Result>(_ body: (EnvironmentTable) throws -> Result) throws -> Result? {
        guard try hasDatabase else { return nil }
        var options = OperationsDatabase.Options()
        options.isReadOnly = true
        options.busyTimeout = self.options.lockTimeout
        options.schema = .asItIs
        let database = try OperationsDatabase(folder: url, options: options)
        defer { try? database.close() }
        // From the third migration on.
        guard try database.schemaStatus().applied.contains(where: { $0.name == "environments" }) else { return nil }
        return try body(database.environments)
    }
}
