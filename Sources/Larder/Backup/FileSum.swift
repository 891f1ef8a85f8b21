import Crypto
import Foundation
import LarderFiles

/// SHA-256 of files, in hexadecimal.
enum FileSum {
    static func of(_ file: URL, _ files: FileSystem) throws(FileError) -> (size: Int, sum: String) {
        var (hash, size) = (SHA256(), 0)
        try files.read(file.path) { part in
            hash.update(data: part)
            size += part.count
        }
        return (size, hexadecimal(hash.finalize()))
    }

    /// Copies a file to a new one, durably.
    ///
    /// - Returns: The size and the sum of the copied bytes.
    static func copy(
        _ file: URL, to target: String, _ files: FileSystem
    ) throws(FileError) -> (size: Int, sum: String) {
        var (hash, size) = (SHA256(), 0)
        try files.copy(file.path, to: target) { part in
            hash.update(data: part)
            size += part.count
        }
        return (size, hexadecimal(hash.finalize()))
    }
}
