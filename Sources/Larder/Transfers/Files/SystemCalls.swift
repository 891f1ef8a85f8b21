#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What the system says of a call that failed.
struct FileFailure: CustomStringConvertible {
    let status: Int32

    init(_ status: Int32) { self.status = status }

    var description: String { "\(String(cString: strerror(status))) (errno \(status))" }
}

/// `open`, whose name a method has.
func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 { open(path, flags, mode) }

extension statvfs {
    /// Bytes that the volume has free for this user.
    var room: Int64 {
        let (bytes, isLarge) = Int64(clamping: f_bavail).multipliedReportingOverflow(by: Int64(clamping: f_frsize))
        return isLarge ? .max : bytes
    }
}

/// Fills a buffer with a file's bytes from an offset on, in as many calls as it takes.
///
/// - Returns: How many bytes there were: fewer where the file ends, or where there is a failure.
func systemRead(
    _ descriptor: Int32, _ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer
) -> (count: Int, failure: FileFailure?) {
    guard let start = buffer.baseAddress else { return (0, nil) }
    var count = 0
    while count < buffer.count {
        // Safe: so many bytes of the buffer are left.
        let got = pread(descriptor, start + count, buffer.count - count, off_t(offset) + off_t(count))
        if got > 0 {
            count += got
        } else {
            let status = errno
            if got == 0 { break }
            if status != EINTR { return (count, FileFailure(status)) }
        }
    }
    return (count, nil)
}
