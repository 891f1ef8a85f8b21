import ArgumentParser

/// What verbs take that remove much.
struct WritePermission: ParsableArguments {
    @Flag(help: "Really do it.")
    var write = false

    func require(for what: String) throws(Failure) {
        guard write else { throw Failure(.notConfirmed, .refused, "\(what) is done with --write only") }
    }
}
