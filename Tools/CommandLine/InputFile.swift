import Foundation
package import LarderFiles

/// A file that an argument names.
package struct InputFile {
    /// More than any response may have.
    package static let limit = 1 << 30

    /// What it is for: "the operation".
    package let role: String
    package let path: String

    package init(role: String, path: String) {
        self.role = role
        self.path = path
    }

    /// The bytes; of standard input where the path is `-`.
    package func bytes() throws(Failure) -> [UInt8] {
        if path == "-" { return try read(.standardInput) }
        guard !path.isEmpty else { throw unusable("its name is empty") }
        guard let status = try status() else { throw unusable("there is no such file") }
        guard status.kind != .folder else { throw unusable("it is a folder") }
        // It may be a pipe, whose writer is waited for.
        let file: FileHandle
        do { file = try FileHandle(forReadingFrom: URL(filePath: path)) } catch {
            let isForbidden = (error as? CocoaError)?.code == .fileReadNoPermission
            throw unusable(isForbidden ? "it may not be read" : "it cannot be read")
        }
        defer { try? file.close() }
        return try read(file)
    }

    /// What is at the path; nil where there is nothing.
    package func status() throws(Failure) -> FileStatus? {
        do throws(FileError) { return try FileSystem().status(of: path) } catch { throw unusable(error) }
    }

    package func text() throws(Failure) -> String {
        let bytes = try bytes()
        guard !bytes.isEmpty else { throw unusable("it is empty") }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw unusable("it is not a text in UTF-8") }
        return text
    }

    private func read(_ file: FileHandle) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            while let part = try file.read(upToCount: 1 << 20), !part.isEmpty {
                bytes.append(contentsOf: part)
                guard bytes.count <= Self.limit else { break }
            }
        } catch { throw unusable("it cannot be read") }
        guard bytes.count <= Self.limit else { throw unusable("it is larger than \(Self.limit) bytes") }
        return bytes
    }

    package func unusable(_ error: FileError) -> Failure {
        unusable(error.code == .permissionDenied ? "it may not be looked at" : error.reason)
    }

    package func unusable(_ reason: String) -> Failure {
        Failure(usage: "\(role) \(path == "-" ? "on standard input" : path): \(reason)", code: .file)
    }
}
