import Crypto
import LarderFiles

/// What a signature says of the bytes that follow the headers: the value of `x-amz-content-sha256`.
package enum PayloadHash: Sendable, Hashable {
    /// Their SHA-256, in hexadecimal digits.
    case sha256(String)
    /// Nothing; TLS keeps them.
    case unsigned
    /// Nothing; they come in chunks, and their checksum behind them.
    case unsignedTrailer
    /// They come in chunks that are each signed, and so is their checksum behind them.
    case signedTrailer
    /// They come in chunks that are each signed.
    case signedChunks

    /// Of these bytes.
    package static func of(_ bytes: some Sequence<UInt8>) -> PayloadHash {
        .sha256(hexadecimal(SHA256.hash(data: Array(bytes))))
    }

    /// Of no bytes.
    package static let empty = PayloadHash.of([])

    package var headerValue: String {
        switch self {
        case .sha256(let digits): digits
        case .unsigned: "UNSIGNED-PAYLOAD"
        case .unsignedTrailer: "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
        case .signedTrailer: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
        case .signedChunks: "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
        }
    }
}
