/// What bringing back a backup did to `larder.sqlite`.
package struct RestorationReport: Sendable, Hashable {
    /// Mutations of the backup of which the store knew nothing any more.
    package var mutations = 0
    /// The ones of these that are not provably unsent, or lack what they waited for: they are set aside.
    package var setAside = 0
    /// Mutations of the backup that were settled since, and are not sent again.
    package var settledSince = 0
    /// Mutations that the store has: the backup's state of them is older.
    package var kept = 0
    /// Partitions that the store did not have any more.
    package var partitions = 0
    /// The names of partitions that were forgotten since, and whose place is another's now.
    package var leftOut: [String] = []
    /// Whether the store had no `larder.sqlite`, and has the backup's now.
    package var isWhole = false
}
