import Foundation
import LarderTestSupport
import Testing

/// Runs `body` with a folder on a volume of its own of so many bytes, which only root can make.
func withSmallVolume(_ bytes: Int, _ body: (URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        try #require(succeeds("mount", "-t", "tmpfs", "-o", "size=\(bytes)", "tmpfs", folder.path))
        defer { _ = succeeds("umount", "-l", folder.path) }
        try await body(folder)
    }
}

/// Whether `withSmallVolume` works here.
let canMount = succeeds(
    "sh", "-c", "d=$(mktemp -d) && mount -t tmpfs -o size=1m tmpfs $d && umount $d; s=$?; rmdir $d; exit $s")

private func succeeds(_ program: String, _ arguments: String...) -> Bool {
    let child = Process()
    child.executableURL = URL(filePath: "/usr/bin/env")
    child.arguments = [program] + arguments
    child.standardOutput = FileHandle.nullDevice
    child.standardError = FileHandle.nullDevice
    guard (try? child.run()) != nil else { return false }
    child.waitUntilExit()
    return child.terminationStatus == 0
}
