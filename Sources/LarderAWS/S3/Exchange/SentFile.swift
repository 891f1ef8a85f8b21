import Larder
import NIOCore

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A part of a file that event loops send from.
struct SentFile {
    private let handle: NIOFileHandle
    private let place: FilePlace

    init(_ place: FilePlace) throws(ObjectError) {
        // The client may still have what is left of an exchange when whoever opened the file closes it; and several
        // connections may send from one file, which a handle does not allow.
        let descriptor = fcntl(place.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else {
            throw ObjectError(.local, "The file could not be opened once more: \(String(cString: strerror(errno))).")
        }
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        self.place = place
    }

    func region(_ range: Range<Int64>) -> FileRegion {
        FileRegion(
            fileHandle: handle, readerIndex: Int(place.offset + range.lowerBound),
            endIndex: Int(place.offset + range.upperBound))
    }

    /// Closes it. A loop that sends from it at this moment is waited for; one that comes later is refused.
    func close(_ loops: any EventLoopGroup) async {
        while true {
            do { return try handle.close() } catch {
                guard let error = error as? IOError, error.errnoCode == EBUSY else { return }
                for loop in loops.makeIterator() { try? await loop.submit {}.get() }
            }
        }
    }
}
