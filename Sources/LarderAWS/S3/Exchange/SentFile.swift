import Larder
import LarderFiles
import NIOCore

/// A part of a file that event loops send from.
struct SentFile {
    private let handle: NIOFileHandle
    private let segment: FileSegment
    private static let watchPause = TimeAmount.seconds(1)

    init(_ segment: FileSegment) throws(ObjectError) {
        // The client may still have what is left of an exchange when the file's opener closes it; and several
        // connections may send from one file, which a handle does not allow.
        let descriptor: Int32
        do { descriptor = try segment.files.duplicate(segment.descriptor) } catch {
            throw ObjectError(
                error.isShortage ? .notPrepared : .local, "The file could not be opened once more: \(error.reason).",
                cause: error)
        }
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        self.segment = segment
    }

    func region(_ range: Range<Int64>) -> FileRegion {
        FileRegion(
            fileHandle: handle, readerIndex: Int(segment.offset + range.lowerBound),
            endIndex: Int(segment.offset + range.upperBound))
    }

    /// Ends an exchange that sends so many bytes where the file has become shorter. A loop that must send missing bytes
    /// tries again and again.
    ///
    /// - Returns: What looks now and then, to be cancelled.
    func watch(_ size: Int64, for exchange: BodyExchange, on loop: any EventLoop) -> RepeatedTask {
        // By the descriptor that the segment keeps open: a handle has one user at a time, and that is a loop.
        loop.scheduleRepeatedTask(initialDelay: Self.watchPause, delay: Self.watchPause) { [segment] task in
            let status = try? segment.files.status(ofDescriptor: segment.descriptor)
            guard let status, status.size < segment.offset + size else { return }
            task.cancel()
            exchange.fail(ObjectError(.local, "The file became shorter while it was sent."))
        }
    }

    /// Closes it. A loop that sends from it at this moment is waited for; one that comes later is refused.
    func close(_ loops: any EventLoopGroup) async {
        while true {
            do { return try handle.close() } catch {
                guard let error = error as? IOError, error.errnoCode == FileError.busy else { return }
                for loop in loops.makeIterator() { try? await loop.submit {}.get() }
            }
        }
    }
}
