internal import Crypto
internal import Foundation
internal import LarderRecords
internal import Logging

/// A compiled schema in the store, under the SHA-256 of the texts it was compiled from.
///
/// Only a shortcut: what cannot be read is compiled again, and what cannot be written is compiled again next time.
struct KeptSchema {
    private let file: URL

    init(folder: URL, texts: [String]) {
        var hash = SHA256()
        for text in texts {
            hash.update(data: Array("\(text.utf8.count):".utf8))
            hash.update(data: Array(text.utf8))
        }
        let digest = String(decoding: hexadecimal(hash.finalize()), as: UTF8.self)
        file = folder.appending(path: "schemas/\(digest).schema")
    }

    func load() -> Schema? {
        guard let bytes = try? Data(contentsOf: file) else { return nil }
        return try? Schema(compiled: Array(bytes))
    }

    func save(_ schema: Schema, _ logger: Logger) {
        guard !FileManager.default.fileExists(atPath: file.path) else { return }
        do {
            let folder = file.deletingLastPathComponent()
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data(schema.compiled).write(to: file, options: .atomic)
        } catch {
            logger.warning("the compiled schema could not be kept", metadata: ["error": "\(error)"])
        }
    }
}
