import Crypto
import Foundation
import LarderFiles
import LarderRecords
import Logging

/// A compiled schema in the store, under the SHA-256 of the texts it was compiled from.
///
/// Only a shortcut: a schema that cannot be read is compiled again, and one that cannot be written is compiled again
/// next time. The store keeps the last few compiled schemas, for programs of several versions that share it.
struct KeptSchema {
    private static let keptCount = 4

    private let file: URL
    private let files: FileSystem

    init(folder: URL, texts: [String], _ files: FileSystem) {
        self.files = files
        var hash = SHA256()
        for text in texts {
            var text = text
            hash.update(data: Array("\(text.utf8.count):".utf8))
            // A schema may have a megabyte, and this is on the way to a program's first answer: no copy of it.
            text.withUTF8 { unsafe hash.update(bufferPointer: UnsafeRawBufferPointer($0)) }
        }
        let digest = hexadecimal(hash.finalize())
        file = folder.appending(path: "schemas/\(digest).schema")
    }

    func load() -> Schema? {
        guard let bytes = try? files.bytes(of: file.path) else { return nil }
        return try? Schema(compiled: bytes)
    }

    /// The schema of a store's folder that was compiled last, by whatever program; nil where none can be read.
    static func newest(in folder: URL, _ files: FileSystem) -> Schema? {
        let folder = folder.appending(path: "schemas").path
        let kept = ((try? files.names(in: folder)) ?? []).filter { $0.hasSuffix(".schema") }.map { "\(folder)/\($0)" }
        let dated = kept.map { (path: $0, time: (try? files.status(of: $0))?.modified ?? .min) }
        for (path, _) in dated.sorted(by: { ($0.time, $0.path) > ($1.time, $1.path) }) {
            if let bytes = try? files.bytes(of: path), let schema = try? Schema(compiled: bytes) { return schema }
        }
        return nil
    }

    func save(_ schema: Schema, _ logger: Logger) {
        do {
            let folder = file.deletingLastPathComponent()
            try files.makeFolder(folder.path)
            try files.replace(file.path, with: schema.compiled)
            try removeOldest(in: folder)
        } catch {
            logger.warning("the compiled schema could not be kept", metadata: ["error": "\(error)"])
        }
    }

    /// Removes all compiled schemas but this one and the few that were compiled last.
    private func removeOldest(in folder: URL) throws {
        let others = try files.names(in: folder.path).filter {
            $0.hasSuffix(".schema") && $0 != file.lastPathComponent
        }.map { folder.appending(path: $0).path }
        let dated = try others.map { (path: $0, time: try files.status(of: $0)?.modified ?? .min) }
        // Another process may have removed one just now, or read it: it has its bytes.
        for old in dated.sorted(by: { $0.time > $1.time }).dropFirst(Self.keptCount - 1) { try files.remove(old.path) }
    }
}
