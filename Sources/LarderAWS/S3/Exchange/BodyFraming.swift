import Crypto
#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif
import Larder
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
        private let framing: BodyFraming
        private let signature: SignatureV4
        private var previous: String
        private var checksum = CRC32C()
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
            _ count: Int, isLast: Bool, fill: (UnsafeMutableRawBufferPointer) throws -> Void
        ) rethrows -> ByteBuffer {
            guard framing.hasTrailer else {
                var buffer = buffers.take(capacity: count)
                _ = try write(count, to: &buffer, fill: fill)
                buffers.keep(buffer)
                return buffer
            }
            // The head holds the signature of what follows it: room is left, and filled afterwards.
            let headLength = framing.headLength(count)
            var buffer = buffers.take(capacity: headLength + count + 2 + (isLast ? 320 : 0))
            buffer.writeRepeatingByte(0, count: headLength)
            let digest = try write(count, to: &buffer, fill: fill)
            buffer.setString(head(count, digest: digest), at: buffer.readerIndex)
            buffer.writeStaticString("\r\n")
            if isLast { writeTrailer(to: &buffer) }
            buffers.keep(buffer)
            return buffer
        }

        /// All that follows the last byte.
        package mutating func trailer() -> ByteBuffer {
            var buffer = ByteBuffer()
            if framing.hasTrailer { writeTrailer(to: &buffer) }
            return buffer
        }

        /// - Returns: The SHA-256 of the bytes, where chunks are signed.
        private mutating func write(
            _ count: Int, to buffer: inout ByteBuffer, fill: (UnsafeMutableRawBufferPointer) throws -> Void
        ) rethrows -> String? {
            var digest: String?
            try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { space in
                let bytes = UnsafeMutableRawBufferPointer(rebasing: space[..<count])
                try fill(bytes)
                checksum.update(UnsafeRawBufferPointer(bytes))
                if framing.isSigned {
                    var hash = SHA256()
                    hash.update(bufferPointer: UnsafeRawBufferPointer(bytes))
                    digest = hexadecimal(hash.finalize())
                }
                return count
            }
            return digest
        }

        private mutating func head(_ count: Int, digest: String?) -> String {
            var head = String(count, radix: 16)
            if let digest {
                previous = signature.signature(ofChunk: digest, after: previous)
                head += BodyFraming.signatureField + previous
            }
            return head + "\r\n"
        }

        private mutating func writeTrailer(to buffer: inout ByteBuffer) {
            buffer.writeString(head(0, digest: framing.isSigned ? PayloadHash.empty.headerValue : nil))
            let field = "\(BodyFraming.trailerName):\(Checksums.text(crc32c))"
            buffer.writeString(field + "\r\n")
            if framing.isSigned {
                let signature = signature.signature(ofTrailer: field + "\n", after: previous)
                buffer.writeString("\(BodyFraming.trailerSignatureName):\(signature)\r\n")
            }
            buffer.writeString("\r\n")
        }
    }
}
