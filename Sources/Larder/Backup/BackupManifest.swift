package import Foundation

/// What a backup holds, as its `manifest.json` says it.
package struct BackupManifest: Sendable, Hashable, Codable {
    /// The version of the format that this library writes.
    package static let currentVersion = 1
    package static let fileName = "manifest.json"

    package struct File: Sendable, Hashable, Codable {
        /// Within the backup.
        package var path: String
        package var size: Int
        /// SHA-256 in hexadecimal.
        package var sha256: String
    }

    package struct Partition: Sendable, Hashable, Codable {
        package var name: String
        package var environment: String?
        /// The record cache's data file within the backup; nil where there is none.
        package var cache: String?
        /// The record cache's format.
        package var format: Int?
        /// Why there is none, where the store had one.
        package var omitted: String?
    }

    package var version: Int
    /// The identity of the store; nil where it had no `larder.sqlite`, or one from before there were identities.
    package var store: String?
    package var created: Date
    /// The number of the last migration; nil where there was no `larder.sqlite`.
    package var schema: Int?
    package var files: [File]
    package var partitions: [Partition]

    enum CodingKeys: String, CodingKey {
        case version = "larder-backup"
        case store, created, schema, files, partitions
    }

    /// The file of this path within the backup.
    func file(_ path: String) -> File? { files.first { $0.path == path } }
}
