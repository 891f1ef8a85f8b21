package import Foundation

/// What `recorder.c` wrote down.
package struct Recording: Sendable {
    package let root: String
    package private(set) var entries: [RecordedEntry]
    /// What was made with rights for other users than its owner, which only the process's mask may take away.
    package let exposed: [String]

    package struct Malformed: Error {
        package let reason: String
    }

    package init(_ file: URL) throws {
        let bytes = try Data(contentsOf: file)
        var entries: [RecordedEntry] = []
        var root = ""
        var exposed: [String] = []
        var rest = bytes[...]
        func take(_ count: Int) throws -> Data {
            guard count <= rest.count else { throw Malformed(reason: "the recording ends inside an entry") }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        while !rest.isEmpty {
            let head = try take(48)
            func number<Number: FixedWidthInteger>(_ offset: Int, _: Number.Type) -> Number {
                head.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Number.self) }
            }
            let inode = number(8, UInt64.self)
            let offset = Int(number(16, UInt64.self))
            let path = String(decoding: try take(Int(number(32, UInt32.self))), as: UTF8.self)
            let other = String(decoding: try take(Int(number(36, UInt32.self))), as: UTF8.self)
            let data = try take(Int(number(40, UInt64.self)))
            if [2, 8].contains(number(0, UInt32.self)), offset & 0o077 != 0 { exposed.append(path) }
            switch number(0, UInt32.self) {
            case 1:
                root = path
                entries.append(.root(inode: inode))
            case 2: entries.append(.create(path: path, inode: inode))
            case 3:
                let isSynced = number(4, UInt32.self) != 0
                entries.append(.write(inode: inode, offset: offset, bytes: data, isSynced: isSynced))
            case 4: entries.append(.resize(inode: inode, size: offset))
            case 5: entries.append(.allocate(inode: inode, end: offset + Int(number(24, UInt64.self))))
            case 6: entries.append(.rename(from: path, to: other))
            case 7, 9: entries.append(.remove(path: path))
            case 8: entries.append(.makeFolder(path: path, inode: inode))
            case 10: entries.append(.link(from: path, to: other))
            case 11: entries.append(.sync(inode: inode, dataOnly: false))
            case 12: entries.append(.sync(inode: inode, dataOnly: true))
            case 13: entries.append(.mark(String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)))
            case 14: entries.append(.mapped(inode: inode))
            case 16: entries.append(.failedSync(inode: inode))
            default: throw Malformed(reason: "a call that the recorder does not understand: \(path) \(other)")
            }
        }
        self.entries = entries
        self.root = root
        self.exposed = exposed
    }

    /// The same of a folder that was not empty when the recording began.
    ///
    /// - Parameter existing: `RecordedEntry.existing` of that folder.
    package func beginning(with existing: [RecordedEntry]) -> Recording {
        var whole = self
        whole.entries.insert(contentsOf: existing, at: 1)
        return whole
    }
}

extension RecordedEntry {
    /// What makes the files that are in a folder, all of it durable.
    ///
    /// - Parameter root: As a recording names the folder.
    package static func existing(in folder: URL, as root: String) throws -> [RecordedEntry] {
        var entries: [RecordedEntry] = []
        var folders = [try inode(folder.path)]
        let names = FileManager.default.enumerator(atPath: folder.path)?.allObjects.compactMap { $0 as? String } ?? []
        for name in names.sorted() {
            let path = folder.path + "/" + name
            let inode = try inode(path)
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            if isFolder.boolValue {
                entries.append(.makeFolder(path: "\(root)/\(name)", inode: inode))
                folders.append(inode)
            } else {
                entries.append(.create(path: "\(root)/\(name)", inode: inode))
                let bytes = try Data(contentsOf: URL(filePath: path))
                entries.append(.write(inode: inode, offset: 0, bytes: bytes, isSynced: true))
            }
        }
        return entries + folders.map { .sync(inode: $0, dataOnly: false) }
    }

    private static func inode(_ path: String) throws -> UInt64 {
        let number = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? NSNumber
        return number?.uint64Value ?? 0
    }
}
