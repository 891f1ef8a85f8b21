/// How long something stored is left alone: a mutation or a transfer after a failure, or the uploads behind one whose
/// exchange has ended without an answer.
package enum StoredPause {
    /// In milliseconds: a day. No pause is made longer, and whatever is stored beyond it does not count, since a
    /// damaged row would wait for ever.
    package static let longest: Int64 = 86_400_000

    /// Until when one waits; nil where it does not. All in milliseconds since 1970.
    ///
    /// - Parameter set: When the end was worked out. By a clock that has been set back since if that is yet to come,
    ///   and nil where the row was damaged: then it does not wait.
    static func end(_ end: Int64?, set: Int64?, now: Int64) -> Int64? {
        guard let end, let set, set <= now else { return nil }
        let (latest, isPastAll) = set.addingReportingOverflow(longest)
        let clipped = isPastAll ? end : min(end, latest)
        return now < clipped ? clipped : nil
    }
}
