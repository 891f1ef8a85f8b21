package import Foundation

/// Real inputs that are kept outside the checkout: in the folder that `LARDER_TEST_DATA` names, otherwise beside the
/// checkout, in `../shared/data`.
///
/// Tests that read them are enabled only where the folder exists, and `Tools/test` says how many were not:
/// `@Test(.enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))`.
package enum SharedData {
    package static let requirement = "needs test data: set LARDER_TEST_DATA, or keep it in ../shared/data"

    package static let folder: URL =
        ProcessInfo.processInfo.environment["LARDER_TEST_DATA"].map { URL(filePath: $0) }
        ?? packageRoot.deletingLastPathComponent().appending(path: "shared/data")

    package static var isPresent: Bool { FileManager.default.fileExists(atPath: folder.path) }

    /// The bytes of a file in the folder, such as `github/schema.graphqls`.
    package static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appending(path: name)))
    }
}

/// The folder that holds `Package.swift`.
package let packageRoot: URL = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
