import ArgumentParser

/// What verbs take that wait to be told that they may.
package struct WritePermission: ParsableArguments {
    /// The one rule of which verbs want `--write`.
    package static let rule = """
        What a verb adds, and what it removes of the cache by name, it does at once. A verb wants --write where it \
        removes more than its arguments name, or changes or gives up what no server has: rows that are queued, and \
        backups. Without --write nothing is changed: gc, transfers gc, repair, import and backup prune then tell what \
        they would do, and the others are refused with status 4.
        """

    @Flag(help: "Really do it.")
    package var write = false

    package init() {}

    package func require(for what: String) throws(Failure) {
        guard write else { throw Failure(.notConfirmed, .refused, "\(what) is done with --write only") }
    }
}
