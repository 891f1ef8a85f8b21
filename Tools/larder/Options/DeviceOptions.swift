import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations

/// How a verb that carries out what a store has queued knows that the store is no copy, whose original does so as well.
struct DeviceOptions: ParsableArguments {
    @Option(
        name: .customLong("device-tokens"),
        help: ArgumentHelp(
            "The folder in which the store's program keeps its tokens of this device. By them it knows a copy.",
            valueName: "folder"))
    var folder: String?
    @Flag(
        name: .customLong("not-a-copy"),
        help: "Carry out what is queued, though it cannot be known whether another copy of the store did so.")
    var isNotCopied = false

    func validate() throws {
        guard folder == nil || !isNotCopied else {
            throw ValidationError("--device-tokens and --not-a-copy exclude each other.")
        }
    }

    /// The program's tokens; nil where they were not named, and are not needed.
    ///
    /// - Throws: `command.mayBeCopy`.
    func tokens(for database: OperationsDatabase) throws -> FileDeviceTokens? {
        guard !isNotCopied else { return nil }
        let tokens = try folder.map { (path) throws(Failure) in
            guard try StoreFolder.look(at: path, FileSystem())?.kind == .folder else {
                throw Failure(usage: "\(path) is no folder; --device-tokens names one", code: .file)
            }
            return FileDeviceTokens(folder: URL(filePath: path))
        }
        guard try database.mayBeCopy(on: tokens.map { DeviceMark($0) }) else { return tokens }
        throw Failure(
            .mayBeCopy, .refused,
            (folder.map { "The store is a copy, or is of another device: its token is not the one in \($0)" }
                ?? "The store's program keeps a token on its device, without which it cannot be known whether this is a copy")
                + "; what is queued may have been sent by another copy")
    }
}
