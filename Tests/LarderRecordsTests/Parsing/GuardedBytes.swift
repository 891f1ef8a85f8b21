#if canImport(Darwin)
import Darwin
#else
import Glibc
#endif

/// Bytes whose end is the end of readable memory: reading one more ends the process.
///
/// The memory belongs to the call; nothing keeps it.
func withGuardedBytes<Result>(_ bytes: [UInt8], _ body: (UnsafePointer<UInt8>) throws -> Result) rethrows -> Result? {
    let page = Int(sysconf(Int32(_SC_PAGESIZE)))
    let size = (bytes.count + page - 1) / page * page
    guard let memory = mmap(nil, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
        memory != MAP_FAILED
    else { return nil }
    defer { munmap(memory, size + page) }
    guard mprotect(memory + size, page, PROT_NONE) == 0 else { return nil }
    let start = memory + size - bytes.count
    bytes.withUnsafeBytes { source in
        if let from = source.baseAddress { start.copyMemory(from: from, byteCount: source.count) }
    }
    return try body(UnsafePointer(start.assumingMemoryBound(to: UInt8.self)))
}
