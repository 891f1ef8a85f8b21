package import ArgumentParser

/// A subcommand.
package protocol Verb: ParsableCommand {
    /// What every verb takes.
    var store: StoreOptions { get }

    /// What `--json` calls the verb: with the verb's own, where it is one of a verb.
    static var name: String { get }

    func perform(_ output: Output) async throws
}

extension Verb {
    package static var name: String { configuration.commandName ?? String(describing: Self.self).lowercased() }
}
