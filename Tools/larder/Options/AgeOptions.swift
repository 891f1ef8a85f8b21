import ArgumentParser
import Larder
import LarderCommandLine

/// How old an answer from the store may be.
struct AgeOptions: ParsableArguments {
    @Option(
        name: .customLong("max-age"),
        help: ArgumentHelp(
            "How old the oldest part of an answer from the store may be, in place of what the schema and the server say.",
            valueName: "seconds"))
    var maxAge: Int?
    @Flag(help: "Take an answer from the store that is older than it may be.")
    var stale = false

    func applied(to options: FetchOptions) throws(Failure) -> FetchOptions {
        guard maxAge ?? 0 >= 0 else { throw Failure(usage: "The maximum age must not be negative") }
        var options = options
        (options.maxAge, options.staleAllowed) = (maxAge.map { .seconds($0) }, stale)
        return options
    }
}
