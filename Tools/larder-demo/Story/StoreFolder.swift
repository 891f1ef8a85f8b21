import Foundation
import Larder

/// Where the demonstration keeps its store.
enum StoreFolder {
    struct Unusable: Error {
        var message: String
    }

    /// The folder that the options name, or a new one of our own.
    static func make(_ options: DemoOptions) throws(Unusable) -> URL {
        let files = FileManager.default
        let name = String(UInt32.random(in: .min ... .max), radix: 36)
        let folder = options.store ?? files.temporaryDirectory.appending(path: "larder-demo-\(name)")
        do {
            // As the library would make it.
            try files.createDirectory(
                at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            guard try files.contentsOfDirectory(atPath: folder.path).isEmpty else {
                throw Unusable(message: "\(folder.path) is not empty; --store takes a new or empty folder")
            }
            // What cannot be written to is found out now, and not in the middle.
            let probe = folder.appending(path: "probe")
            try Data().write(to: probe)
            try files.removeItem(at: probe)
        } catch let error as Unusable {
            throw error
        } catch {
            if options.store == nil { try? files.removeItem(at: folder) }
            let remedy = options.store == nil ? "set TMPDIR, or name one with --store" : "name another one"
            throw Unusable(message: "\(folder.path) cannot be written to; \(remedy)\n  (\(error.localizedDescription))")
        }
        return folder
    }

    /// The sizes of all files.
    static func bytes(in folder: URL) -> Int {
        let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: [.fileSizeKey])
        var sum = 0
        while let file = files?.nextObject() as? URL {
            sum += (try? file.resourceValues(forKeys: [.fileSizeKey]))?.fileSize ?? 0
        }
        return sum
    }
}

extension Store.Options {
    /// The demonstration says itself what happens.
    static var quiet: Self {
        var options = Self()
        options.silence()
        return options
    }
}
