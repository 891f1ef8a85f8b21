import Crypto
import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

/// Bytes that a seed repeats.
func randomBytes(_ count: Int, seed: UInt64 = 5) -> [UInt8] {
    var numbers = SeededNumbers(seed: seed)
    var bytes = [UInt8](repeating: 0, count: count)
    bytes.withUnsafeMutableBytes { space in
        for at in stride(from: 0, to: count, by: 8) {
            var word = numbers.next()
            withUnsafeBytes(of: &word) { source in
                UnsafeMutableRawBufferPointer(rebasing: space[at..<min(at + 8, count)])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[..<min(8, count - at)]))
            }
        }
    }
    return bytes
}

extension ObjectBody {
    /// These bytes.
    init(_ bytes: [UInt8], pace: @escaping @Sendable (Int) async throws -> Void = { _ in }) {
        self.init(
            size: Int64(bytes.count),
            read: { offset, buffer in
                let start = Int(offset)
                bytes.withUnsafeBytes {
                    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<(start + buffer.count)]))
                }
            },
            pace: pace)
    }

    /// So many bytes that are never all in memory: each is the lowest byte of its offset divided by 8.
    static func pattern(_ size: Int64, pace: @escaping @Sendable (Int) async throws -> Void = { _ in }) -> ObjectBody {
        ObjectBody(
            size: size,
            read: { offset, buffer in
                for at in buffer.indices { buffer[at] = UInt8(truncatingIfNeeded: (offset + Int64(at)) >> 3) }
            },
            pace: pace)
    }
}

/// Keeps what it is given.
final class Collected: Sendable {
    private struct State {
        var bytes: [UInt8] = []
        var offset: Int64?
        var isInOrder = true
    }

    private let state = Mutex(State())

    var bytes: [UInt8] { state.withLock { $0.bytes } }
    /// Whether offsets ascended without gaps.
    var isInOrder: Bool { state.withLock { $0.isInOrder } }

    func sink(pace: @escaping @Sendable (Int) async throws -> Void = { _ in }) -> ObjectSink {
        ObjectSink(
            write: { offset, bytes in
                self.state.withLock { state in
                    if let expected = state.offset, expected != offset { state.isInOrder = false }
                    state.offset = offset + Int64(bytes.count)
                    state.bytes += bytes
                }
            },
            pace: pace)
    }
}

/// The error that `body` throws; a failure of the test where it throws none.
func objectError<Result>(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws(ObjectError) -> Result
) async throws -> ObjectError {
    do throws(ObjectError) {
        _ = try await body()
    } catch {
        return error
    }
    Issue.record("nothing was thrown", sourceLocation: sourceLocation)
    throw NothingThrown()
}

struct NothingThrown: Error {}

extension Duration {
    /// A time that no test reaches.
    static let ample = Duration.seconds(300)
}

/// The ETag of an object of this text: its MD5.
func md5ETag(_ text: String) -> String {
    "\"\(hexadecimal(Insecure.MD5.hash(data: Data(text.utf8))))\""
}

/// The bytes of a body in chunks.
func unframed(_ body: [UInt8]) throws -> [UInt8] {
    var (bytes, rest) = ([UInt8](), body[...])
    while let end = rest.firstRange(of: Array("\r\n".utf8)) {
        let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
        let count = try #require(head.split(separator: ";").first.flatMap { Int($0, radix: 16) })
        if count == 0 { break }
        bytes += rest[end.upperBound...].prefix(count)
        rest = rest[end.upperBound...].dropFirst(count + 2)
    }
    return bytes
}
