import Foundation
import LarderTestSupport

/// The program `larder-crash`, which carries transfers out as another process.
enum TransferProgram {
    static let requirement = "the program larder-crash is not built; " + StorageServer.requirement

    static let isUsable = BuiltProgram.exists("larder-crash") && StorageServer.isAvailable

    private static let file = BuiltProgram.file("larder-crash")

    /// - Parameter step: After which it kills itself, and the how manieth time.
    static func start(
        _ folder: URL, _ server: StorageServer, endpoint: String? = nil, step: (name: String, number: Int)? = nil
    ) throws -> Process {
        let child = Process()
        child.executableURL = file
        child.arguments =
            [
                folder.appending(path: "store").path, "carry", endpoint ?? server.url.absoluteString,
                server.accessKeyID,
                server.secretAccessKey, folder.appending(path: "ledger").path,
            ] + (step.map { [$0.name, String($0.number)] } ?? [])
        // It ends with this process: nothing is written there.
        child.standardInput = Pipe.uninherited()
        child.standardOutput = FileHandle.nullDevice
        try child.start()
        return child
    }
}
