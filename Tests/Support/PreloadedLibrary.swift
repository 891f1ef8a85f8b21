package import Foundation

/// What is written in C and preloaded into a program, in place of functions of the system.
package enum PreloadedLibrary {
    /// Compiles a library for this run.
    ///
    /// - Parameter source: By its path in the package.
    /// - Returns: Nil where there is no compiler for it, or no Linux.
    package static func compiled(from source: String) -> URL? {
        #if os(Linux)
        let folder = FileManager.default.temporaryDirectory.appending(path: "larder-\(UUID().uuidString)")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let library = folder.appending(path: "library.so")
        for compiler in ["clang", "cc"] {
            let child = Process()
            child.executableURL = URL(filePath: "/usr/bin/env")
            child.arguments = [
                compiler, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-U_FORTIFY_SOURCE", "-fPIC", "-shared",
                "-o", library.path, packageRoot.appending(path: source).path,
            ]
            guard (try? child.start()) != nil else { continue }
            child.waitUntilExit()
            if child.terminationStatus == 0 { return library }
        }
        #endif
        return nil
    }
}
