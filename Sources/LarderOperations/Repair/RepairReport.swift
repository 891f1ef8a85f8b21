/// What a repair has saved of `larder.sqlite`.
package struct RepairReport: Sendable, Hashable {
    /// How many rows were saved, by table, in the order of their names.
    package var rows: [Row] = []
    package struct Row: Sendable, Hashable {
        package var table: String
        package var saved: Int
        /// Whether some of its pages could not be read.
        package var isDamaged: Bool
        /// How many rows could be read and held what nothing reads: something of each is lost, or all.
        package var damaged = 0
    }

    mutating func noteDamage(in table: String) {
        guard let index = rows.firstIndex(where: { $0.table == table }) else { return }
        rows[index].damaged += 1
    }

    /// Mutations whose content was lost, or that hold a reference to what was lost: set aside, or gone.
    package var setAside = 0
    package var lost = 0
    /// Whether the store's identity was lost: earlier backups are of another store now.
    package var isNewStore = false
    /// The name of the file under which the damaged one is kept.
    package var kept = ""
}
