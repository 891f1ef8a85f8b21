#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension FileSystem {
    /// Whether there is anything at a path, a symbolic link that leads nowhere apart.
    ///
    /// - Throws: What keeps the system from telling. It is no proof that there is nothing.
    package func exists(_ path: String) throws(FileError) -> Bool { try status(of: path) != nil }

    /// The names in a folder, sorted by their bytes; none where there is no folder.
    package func names(in folder: String) throws(FileError) -> [String] {
        #if canImport(Darwin)
        var opened: UnsafeMutablePointer<DIR>?
        #else
        var opened: OpaquePointer?
        #endif
        switch call(
            .open, folder,
            {
                opened = opendir(folder)
                return opened == nil ? -1 : 0
            })
        {
        case 0: break
        case ENOENT, ENOTDIR: return []
        case let status: throw unopened(status, "Listing a folder", folder)
        }
        guard let listing = opened else { return [] }
        defer { closedir(listing) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(listing) else {
                let status = errno
                guard status == 0 else { throw FileError(status, doing: "Listing a folder", path: folder) }
                return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
            }
            // Safe: an entry's name ends with a zero, and the entry is valid until the next is read.
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 1) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    /// Removes a file, or a folder with all that is in it; nothing where there is neither. Links are removed, and not
    /// followed.
    package func removeTree(_ path: String) throws(FileError) {
        guard let status = try status(of: path, followingLinks: false) else { return }
        guard status.kind == .folder else {
            try remove(path)
            return
        }
        for name in try names(in: path) { try removeTree("\(path)/\(name)") }
        switch call(.remove, path, { rmdir(path) }) {
        case 0, ENOENT: return
        case let status: throw FileError(status, doing: "Removing a folder", path: path)
        }
    }

    /// Copies the bytes of a file to a new one, durably but for its name.
    ///
    /// - Parameter visit: Is given the bytes, a part at a time.
    package func copy(_ path: String, to new: String, _ visit: ([UInt8]) -> Void = { _ in }) throws(FileError) {
        let output = try open(new, [.writing, .new, .synchronous])
        var offset: Int64 = 0
        try read(path) { (part) throws(FileError) in
            try output.write(part, at: offset)
            offset += Int64(part.count)
            visit(part)
        }
        try output.synchronize()
    }

    /// Reads all of a file, a mebibyte at a time.
    package func read(_ path: String, _ visit: ([UInt8]) throws(FileError) -> Void) throws(FileError) {
        let file = try open(path)
        var offset: Int64 = 0
        while true {
            let part = try file.bytes(at: offset, count: 1 << 20)
            guard !part.isEmpty else { return }
            try visit(part)
            offset += Int64(part.count)
        }
    }

    /// All bytes of a small file.
    package func bytes(of path: String) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        try read(path) { bytes += $0 }
        return bytes
    }

    /// A part of a name that no other call has given, nor will.
    package static func uniqueSuffix() -> String {
        let numbers = [UInt64.random(in: .min ... .max), .random(in: .min ... .max)]
        return numbers.map { number in
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
    }
}
