import ArgumentParser

/// What verbs take that remove much.
package struct WritePermission: ParsableArguments {
    @Flag(help: "Really do it.")
    package var write = false

    package init() {}

    package func require(for what: String) throws(Failure) {
        guard write else { throw Failure(.notConfirmed, .refused, "\(what) is done with --write only") }
    }
}
