#if os(Linux)
package import Foundation

/// The files below a folder that this process has open.
package func openFiles(below folder: URL) throws -> [String] {
    let own = "/proc/self/fd"
    let prefix = folder.resolvingSymlinksInPath().path
    return try FileManager.default.contentsOfDirectory(atPath: own).compactMap { number in
        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(own)/\(number)")
        return path?.hasPrefix(prefix) == true ? path : nil
    }
}
#endif
