import Crypto
import Foundation
import LarderFiles

/// SHA-256 of files, in hexadecimal.
enum FileSum {
    private static let partSize = 1 << 20

    static func of(_ file: URL) throws -> (size: Int, sum: String) {
        try read(file) { _ in }
    }

    /// Copies a file to a new one, durably.
    ///
    /// - Returns: The size and the sum of the copied bytes.
    static func copy(
        _ file: URL, to target: String, _ files: FileSystem
    ) throws -> (size: Int, sum: String) {
        let output = try files.open(target, [.writing, .new])
        var offset: Int64 = 0
        let result = try read(file) { part in
            try output.write(Array(part), at: offset)
            offset += Int64(part.count)
        }
        try output.synchronize()
        return result
    }

    private static func read(_ file: URL, _ body: (Data) throws -> Void) throws -> (size: Int, sum: String) {
        let input = try FileHandle(forReadingFrom: file)
        defer { try? input.close() }
        var (hash, size) = (SHA256(), 0)
        while let part = try input.read(upToCount: partSize), !part.isEmpty {
            hash.update(data: part)
            size += part.count
            try body(part)
        }
        return (size, hexadecimal(hash.finalize()))
    }
}
