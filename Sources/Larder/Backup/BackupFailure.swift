import Foundation
import LarderFiles
import LarderOperations
import LarderRecords

/// Turns what the layers below and the file system throw into the library's error.
enum BackupFailure {
    static func typed(_ error: any Error) -> LarderError {
        switch error {
        case let error as LarderError: error
        case let error as RecordError: LarderError(error)
        case let error as OperationsError: LarderError(error)
        case let error as FileError where error.code == .protected: .protected(cause: error)
        case let error as FileError where error.code == .noSpace: full(error)
        case let error as FileError where error.code == .permissionDenied || error.code == .readOnlyVolume:
            notWritable(error)
        case let error as CocoaError where error.code == .fileWriteOutOfSpace: full(error)
        case let error as CocoaError where [.fileWriteNoPermission, .fileReadNoPermission].contains(error.code):
            notWritable(error)
        default: LarderError(.backup, "The backup failed; see the cause: \(error)", cause: error)
        }
    }

    private static func full(_ error: any Error) -> LarderError {
        LarderError(OperationsError(.full, "The disk is full; free space and try again", cause: error))
    }

    private static func notWritable(_ error: any Error) -> LarderError {
        LarderError(
            OperationsError(
                .notWritable, "A file cannot be read or written: give this user access to it", cause: error))
    }
}
