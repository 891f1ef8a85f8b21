package import Foundation

/// Whether volumes can be mounted here, which only root may.
package let canMount = succeeds(
    "sh", "-c", "d=$(mktemp -d) && mount -t tmpfs -o size=1m tmpfs $d && umount $d; s=$?; rmdir $d; exit $s")

/// A volume that could not be mounted.
package struct NotMounted: Error {}

/// Runs `body` with a folder on a volume of its own of so many bytes, where `canMount`.
package func withSmallVolume(_ bytes: Int, _ body: (URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        guard succeeds("mount", "-t", "tmpfs", "-o", "size=\(bytes)", "tmpfs", folder.path) else { throw NotMounted() }
        defer { _ = succeeds("umount", "-l", folder.path) }
        try await body(folder)
    }
}

/// Whether anything can be written on a volume of `withSmallVolume`.
package func setReadOnly(_ isReadOnly: Bool, _ volume: URL) throws {
    guard succeeds("mount", "-o", "remount,\(isReadOnly ? "ro" : "rw")", volume.path) else { throw NotMounted() }
}
