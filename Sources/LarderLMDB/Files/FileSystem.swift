#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The few system calls that this layer makes itself, each with its failure as an error.
enum FileSystem {
    /// Makes a folder and those above it.
    static func makeFolder(_ path: String) throws(LMDBError) {
        if mkdir(path, 0o755) == 0 || errno == EEXIST { return }
        let failure = errno
        guard failure == ENOENT, let end = path.lastIndex(of: "/"), end > path.startIndex else {
            throw .make(failure, doing: "making a folder", path: path)
        }
        try makeFolder(String(path[..<end]))
        if mkdir(path, 0o755) == 0 || errno == EEXIST { return }
        throw .make(errno, doing: "making a folder", path: path)
    }

    /// Opens a file; the caller closes it.
    static func open(_ path: String, _ flags: Int32) throws(LMDBError) -> Int32 {
        while true {
            let descriptor = systemOpen(path, flags | O_CLOEXEC, 0o644)
            if descriptor >= 0 { return descriptor }
            if errno != EINTR { throw .make(errno, doing: "opening a file", path: path) }
        }
    }
}

private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
