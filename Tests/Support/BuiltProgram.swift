package import Foundation

/// The programs that are built beside the tests.
package enum BuiltProgram {
    package static func file(_ name: String) -> URL {
        #if os(macOS)
        let folder =
            Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
            .deletingLastPathComponent() ?? Bundle.main.bundleURL
        #else
        let folder = Bundle.main.bundleURL
        #endif
        return folder.appending(path: name)
    }

    package static func exists(_ name: String) -> Bool {
        FileManager.default.isExecutableFile(atPath: file(name).path)
    }
}
