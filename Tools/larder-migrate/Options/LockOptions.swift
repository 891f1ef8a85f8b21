import ArgumentParser
import LarderCommandLine

/// What verbs take that change the store.
struct LockOptions: ParsableArguments {
    @Option(
        name: .customLong("timeout"),
        help: ArgumentHelp(
            "How long to wait for the process that has the migration lock, or the store's files.", valueName: "seconds")
    )
    var seconds: Double = 5

    func duration() throws(Failure) -> Duration {
        guard seconds >= 0, seconds <= 86_400 else {
            throw Failure(usage: "The timeout must be at least 0 and at most 86400 seconds")
        }
        return .seconds(seconds)
    }
}
