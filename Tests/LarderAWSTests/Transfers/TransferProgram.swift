import Foundation
import LarderTestSupport

/// The program `larder-transfer-crash`, which carries transfers out as another process.
enum TransferProgram {
    static let requirement = "the program larder-transfer-crash is not built; " + StorageServer.requirement

    static let isUsable = FileManager.default.isExecutableFile(atPath: file.path) && StorageServer.isAvailable

    private static let file: URL = {
        #if os(macOS)
        let folder =
            Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
            .deletingLastPathComponent() ?? Bundle.main.bundleURL
        #else
        let folder = Bundle.main.bundleURL
        #endif
        return folder.appending(path: "larder-transfer-crash")
    }()

    /// - Parameter step: After which it kills itself, and the how manieth time.
    static func start(
        _ folder: URL, _ server: StorageServer, endpoint: String? = nil, step: (name: String, number: Int)? = nil
    ) throws -> Process {
        let child = Process()
        child.executableURL = file
        child.arguments =
            [
                folder.appending(path: "store").path, endpoint ?? server.url.absoluteString, server.accessKeyID,
                server.secretAccessKey, folder.appending(path: "ledger").path,
            ] + (step.map { [$0.name, String($0.number)] } ?? [])
        // It ends with this process: nothing is written there.
        child.standardInput = Pipe()
        child.standardOutput = FileHandle.nullDevice
        try child.run()
        return child
    }
}
