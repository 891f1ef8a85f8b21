import ArgumentParser

/// A subcommand.
protocol Verb: ParsableCommand {
    /// What every verb takes.
    var store: StoreOptions { get }

    func perform(_ output: Output) async throws
}

extension Verb {
    static var name: String { configuration.commandName ?? String(describing: Self.self).lowercased() }
}
