import Crypto
import Foundation
import Larder
import LarderFiles
package import NIOCore

/// How the bytes of an object are laid out in the body of a request.
///
/// With a trailer they are `aws-chunked`: chunks of hexadecimal length and bytes, a chunk of none, and a header behind
/// them. Amazon S3 API Reference, "Signature calculations for trailing headers (chunked uploads)".
package struct BodyFraming: Sendable {
    let payload: PayloadHash
    let size: Int64
    let chunkSize: Int

    package init(payload: PayloadHash, size: Int64, chunkSize: Int) {
        (self.payload, self.size, self.chunkSize) = (payload, size, chunkSize)
    }

    static let trailerName = "x-amz-checksum-crc32c"
    private static let signatureField = ";chunk-signature="
    private static let trailerSignatureName = "x-amz-trailer-signature"
    private static let digestLength = 64

    /// Whether the bytes come in chunks with their checksum behind them.
    var hasTrailer: Bool { payload == .unsignedTrailer || payload == .signedTrailer }
    private var isSigned: Bool { payload == .signedTrailer }

    /// Bytes of the whole body.
    package var length: Int64 {
        guard hasTrailer else { return size }
        let (whole, rest) = size.quotientAndRemainder(dividingBy: Int64(chunkSize))
        var length = whole * Int64(headLength(chunkSize) + chunkSize + 2)
        if rest > 0 { length += Int64(headLength(Int(rest)) + Int(rest) + 2) }
        // A checksum of four bytes is eight characters in Base64.
        length += Int64(headLength(0) + Self.trailerName.utf8.count + 1 + 8 + 2 + 2)
        if isSigned { length += Int64(Self.trailerSignatureName.utf8.count + 1 + Self.digestLength + 2) }
        return length
    }

    /// Headers that say how it is laid out.
    var headers: [(name: String, value: String)] {
        guard hasTrailer else { return [] }
        return [
            ("content-encoding", "aws-chunked"), ("x-amz-decoded-content-length", String(size)),
            ("x-amz-trailer", Self.trailerName),
            // Some storages return the checksum only where they are told which it is.
            ("x-amz-sdk-checksum-algorithm", "CRC32C"),
        ]
    }

    private func headLength(_ count: Int) -> Int {
        String(count, radix: 16).utf8.count + 2 + (isSigned ? Self.signatureField.utf8.count + Self.digestLength : 0)
    }
}

extension BodyFraming {
    /// The layout of one body, chunk by chunk.
    package struct Writer {
        private static let seenAtATime = 256 << 10

        private let framing: BodyFraming
        private let signature: SignatureV4
        private var previous: String
        private var checksum = CRC32C()
        /// The end of a chunk whose bytes were sent from elsewhere: it goes with what comes next.
        private var owed = ""
        /// What chunks are made in.
        private(set) var buffers: BufferRing

        /// - Parameter seed: The signature of the request, which that of the first chunk follows.
        package init(_ framing: BodyFraming, signature: SignatureV4, seed: String) {
            self.init(framing, signature: signature, seed: seed, buffers: BufferRing())
        }

        /// - Parameter buffers: What chunks are made in.
        init(_ framing: BodyFraming, signature: SignatureV4, seed: String, buffers: BufferRing) {
            (self.framing, self.signature, previous, self.buffers) = (framing, signature, seed, buffers)
        }

        /// The checksum of the bytes so far.
        var crc32c: UInt32 { checksum.value }

        /// A chunk of so many bytes, which `fill` puts in.
        package mutating func chunk(
            _ count: Int, fill: (UnsafeMutableRawBufferPointer) throws -> Void
        ) rethrows -> ByteBuffer {
            // The head holds the signature of what follows it: room is left, and filled afterwards.
            let headLength = framing.hasTrailer ? framing.headLength(count) : 0
            var buffer = buffers.take(capacity: headLength + count + 2)
            buffer.writeRepeatingByte(0, count: headLength)
            var hash = framing.isSigned ? SHA256() : nil
            try see(count, in: &buffer, hash: &hash, fill: fill)
            if framing.hasTrailer {
                buffer.setString(head(count, digest: Self.digest(hash)), at: buffer.readerIndex)
                buffer.writeStaticString("\r\n")
            }
            buffers.keep(buffer)
            return buffer
        }

        /// What goes before so many bytes that are sent from elsewhere; `fill` shows them, some at a time.
        package mutating func head(
            _ count: Int, fill: (_ offset: Int, UnsafeMutableRawBufferPointer) throws -> Void
        ) rethrows -> ByteBuffer {
            var seen = buffers.take(capacity: min(count, Self.seenAtATime))
            defer { buffers.keep(seen) }
            var hash = framing.isSigned ? SHA256() : nil
            for offset in stride(from: 0, to: count, by: Self.seenAtATime) {
                seen.clear()
                try see(min(Self.seenAtATime, count - offset), in: &seen, hash: &hash) { try fill(offset, $0) }
            }
            guard framing.hasTrailer else { return ByteBuffer() }
            defer { owed = "\r\n" }
            return ByteBuffer(string: owed + head(count, digest: Self.digest(hash)))
        }

        /// All that follows the last chunk.
        package mutating func trailer() -> ByteBuffer {
            guard framing.hasTrailer else { return ByteBuffer() }
            var buffer = ByteBuffer(string: owed)
            buffer.writeString(head(0, digest: framing.isSigned ? PayloadHash.empty.headerValue : nil))
            let field = "\(BodyFraming.trailerName):\(Checksums.text(crc32c))"
            buffer.writeString(field + "\r\n")
            if framing.isSigned {
                let signature = signature.signature(ofTrailer: field + "\n", after: previous)
                buffer.writeString("\(BodyFraming.trailerSignatureName):\(signature)\r\n")
            }
            buffer.writeString("\r\n")
            return buffer
        }

        /// - Parameter hash: Goes on with the bytes, where chunks are signed.
        private mutating func see(
            _ count: Int, in buffer: inout ByteBuffer, hash: inout SHA256?,
            fill: (UnsafeMutableRawBufferPointer) throws -> Void
        ) rethrows {
            try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
                let bytes = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                try fill(bytes)
                checksum.update(UnsafeRawBufferPointer(bytes))
                hash?.update(bufferPointer: UnsafeRawBufferPointer(bytes))
                return count
            }
        }

        private static func digest(_ hash: SHA256?) -> String? {
            guard let hash else { return nil }
            return hexadecimal(hash.finalize())
        }

        private mutating func head(_ count: Int, digest: String?) -> String {
            var head = String(count, radix: 16)
            if let digest {
                previous = signature.signature(ofChunk: digest, after: previous)
                head += BodyFraming.signatureField + previous
            }
            return head + "\r\n"
        }
    }
}
