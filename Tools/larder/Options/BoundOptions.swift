import ArgumentParser
import Larder
import LarderCommandLine

/// How large a cache may be, and how old what it has.
struct BoundOptions: ParsableArguments {
    @Option(
        name: .customLong("max-bytes"),
        help: ArgumentHelp("Let go of what came longest ago, until the cache's pages take no more.", valueName: "bytes")
    )
    var maxBytes: Int?
    @Option(
        name: .customLong("max-age"),
        help: ArgumentHelp("Let go of what came longer ago.", valueName: "seconds"))
    var maxAge: Int?

    func bounds() throws(Failure) -> CacheUpkeep {
        guard maxBytes ?? 0 >= 0, maxAge ?? 0 >= 0 else {
            throw Failure(usage: "The maximum size and the maximum age must not be negative")
        }
        return CacheUpkeep(maxBytes: maxBytes, maxAge: maxAge.map { .seconds($0) })
    }
}

extension CacheUpkeep {
    var isBounded: Bool { maxBytes != nil || maxAge != nil }
}
