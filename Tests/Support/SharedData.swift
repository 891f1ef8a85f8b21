package import Foundation

/// Real inputs that are kept beside the checkout and not in it, at `../shared/data`.
///
/// Tests that read them are enabled only where the folder exists:
/// `@Test(.enabled(if: SharedData.isPresent, "needs ../shared/data"))`.
package enum SharedData {
    package static let folder: URL = packageRoot.deletingLastPathComponent().appending(path: "shared/data")

    package static var isPresent: Bool { FileManager.default.fileExists(atPath: folder.path) }

    /// The bytes of a file in the folder, such as `github/schema.graphqls`.
    package static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appending(path: name)))
    }
}

/// The folder that holds `Package.swift`.
package let packageRoot: URL = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
