import LarderLMDB

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
