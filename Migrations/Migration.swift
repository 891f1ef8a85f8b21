/// A numbered change of the database's schema.
package struct Migration: Sendable {
    /// From 1, without gaps.
    package let number: Int
    /// What it is about; the file is `NUMBER-NAME.sql`, the number in four digits.
    package let name: String
    /// The file's bytes: SQL statements.
    package let sql: [UInt8]

    package init(number: Int, name: String, sql: [UInt8]) {
        self.number = number
        self.name = name
        self.sql = sql
    }

    /// All that this version of the library knows, in order.
    ///
    /// The package manager names a file's bytes after the file, with an underscore for whatever a name in Swift cannot
    /// hold, the first digit included.
    package static let all: [Migration] = [
        Migration(number: 1, name: "mutations", sql: PackageResources._001_mutations_sql),
        Migration(number: 2, name: "watchers", sql: PackageResources._002_watchers_sql),
        Migration(number: 3, name: "environments", sql: PackageResources._003_environments_sql),
        Migration(number: 4, name: "transfers", sql: PackageResources._004_transfers_sql),
        Migration(number: 5, name: "touched-keys", sql: PackageResources._005_touched_keys_sql),
        Migration(number: 6, name: "transfer-changes", sql: PackageResources._006_transfer_changes_sql),
        Migration(number: 7, name: "transfer-places", sql: PackageResources._007_transfer_places_sql),
        Migration(number: 8, name: "transfer-digests", sql: PackageResources._008_transfer_digests_sql),
        Migration(number: 9, name: "transfer-removals", sql: PackageResources._009_transfer_removals_sql),
        Migration(number: 10, name: "mutation-links", sql: PackageResources._010_mutation_links_sql),
        Migration(number: 11, name: "mutation-doubts", sql: PackageResources._011_mutation_doubts_sql),
        Migration(number: 12, name: "transfer-doubts", sql: PackageResources._012_transfer_doubts_sql),
        Migration(number: 13, name: "forgotten-outcomes", sql: PackageResources._013_forgotten_outcomes_sql),
        Migration(number: 14, name: "pins", sql: PackageResources._014_pins_sql),
        Migration(number: 15, name: "homes", sql: PackageResources._015_homes_sql),
        Migration(number: 16, name: "transfer-storages", sql: PackageResources._016_transfer_storages_sql),
        Migration(number: 17, name: "handed-over", sql: PackageResources._017_handed_over_sql),
    ]
}
