extension Failure {
    /// What to do next, in one line: the message says what is wrong, and often what mends it.
    ///
    /// - Parameters:
    ///   - tool: The tool's name.
    ///   - verb: The verb's, with that of the verb it belongs to.
    func hint(tool: String, verb: String) -> String {
        switch code {
        case Code.usage.rawValue: "'\(verb == tool ? tool : "\(tool) \(verb)") --help' describes the arguments"
        case Code.file.rawValue: "the file is one that an argument names; nothing was changed"
        case Code.noStore.rawValue: "--store or LARDER_STORE names the folder that the program gives to Store.open"
        case Code.notConfirmed.rawValue: "nothing was changed; say it in the arguments where it is meant"
        case "larder.miss" where ["query", "fetch"].contains(verb):
            "'larder fetch' asks a server; 'larder query' prints with --partial what is known, and with --stale what is "
                + "older than it may be"
        case "larder.miss": "'larder fetch' and 'larder ingest' store something; 'larder env' lists the partitions"
        case "larder.noEnvironment", "operations.unknownEnvironment", "operations.unknownPartition":
            "'larder env' lists the environments and partitions of the store"
        case "operations.unsentWork": "'larder mutations' and 'larder transfers' list it; 'larder run' carries it out"
        case "operations.pending": "'larder-migrate plan' shows what is to be migrated"
        case "transport.notSignedIn": "--auth and --header say who asks"
        case let code where code.hasPrefix("transport."):
            "look at --endpoint and at the server; what is queued stays queued"
        default: ofExit
        }
    }

    private var ofExit: String {
        switch exit {
        case .damaged: "'larder check' names the damage; 'larder-migrate repair' and 'restore' bring back what can be"
        case .refused: "nothing was changed"
        case .miss: "'larder info' tells what the store holds"
        case .usage: "the arguments, or the files that they name, have to change"
        case .success, .failure: "the article CommandLine.md explains codes and exit statuses"
        }
    }
}
