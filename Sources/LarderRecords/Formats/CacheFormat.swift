import LarderLMDB

/// In which format a record cache is, as far as that can be told without opening it for use.
package struct CacheFormat: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        /// This library's own.
        case current
        /// An earlier one, which has to be migrated before the cache can be used.
        case older(UInt32)
        /// A later one: only a newer program can use it.
        case newer(UInt32)
        /// It cannot be told; the text says why.
        case damaged(String)
        /// There is no cache, which is as good as an empty one.
        case absent
    }

    /// The format that this library writes.
    package static let current = GenerationState.format

    /// The number of the generation that is current; the last there was where there is none.
    package var generation: Int
    package var state: State
    /// Of the current generation's data file.
    package var byteCount = 0
}

/// How a cache of one format becomes one of the next: the step is made on a copy of the generation.
///
/// Where there is no step from a format, its caches are rebuilt: emptied, and fetched again.
struct FormatStep: Sendable {
    /// It makes this format's cache one of the next.
    let from: UInt32
    /// Rewrites what differs, but for the counters. Runs in one transaction.
    let rewrite: @Sendable (inout WriteTransaction, Tables) throws -> Void

    /// In order. The first format is the only one so far.
    static let all: [FormatStep] = []

    /// The steps from a format to the current one; nil where one is missing.
    static func path(from format: UInt32, in steps: [FormatStep]) -> [FormatStep]? {
        guard format < CacheFormat.current else { return [] }
        var path: [FormatStep] = []
        for from in format..<CacheFormat.current {
            guard let step = steps.first(where: { $0.from == from }) else { return nil }
            path.append(step)
        }
        return path
    }
}
