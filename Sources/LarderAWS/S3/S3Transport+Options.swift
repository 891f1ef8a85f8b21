public import Foundation
public import Larder

extension S3Transport {
    /// Where requests go and how they are made.
    public struct Options: Sendable {
        /// How a bucket is named in a URL.
        public enum Addressing: Sendable, Hashable {
            /// By the host, but by the path where the host cannot name it: the endpoint is an IP address or
            /// `localhost`, the name is no host's, or it has a dot and TLS is used, whose certificates go no deeper.
            case automatic
            /// `https://bucket.endpoint/key`
            case virtualHost
            /// `https://endpoint/bucket/key`
            case path
        }

        /// In which form the bytes of an object go over the wire.
        public enum Payload: Sendable, Hashable {
            /// `unsignedTrailer` over TLS, `signedTrailer` over plain HTTP.
            case automatic
            /// In chunks with a CRC-32C behind them, which the storage compares. TLS keeps the bytes: S3 takes this
            /// form over TLS only. Read once.
            case unsignedTrailer
            /// In chunks that are signed, and a signed CRC-32C behind them. Read once. Costs a SHA-256 of all bytes.
            case signedTrailer
            /// As they are, with their SHA-256 in the signed headers. Read twice. For storages that know neither
            /// chunks nor checksums; what arrived is compared by its ETag.
            case signed
            /// As they are, and unsigned. Read once. For storages as above, over TLS.
            case unsigned
        }

        /// Another storage that speaks as S3 does, or another way to it: a URL of `http` or `https`, perhaps with a
        /// path. Nil: Amazon S3's in the region.
        public var endpoint: URL?
        /// How a bucket is named in a URL.
        public var addressing: Addressing = .automatic
        /// In which form the bytes of an object are sent.
        public var payload: Payload = .automatic
        /// What the storage allows.
        public var limits: ObjectLimits = .s3
        /// Bytes of an answer other than an object's, above which it is given up with `.unusableAnswer`. A list that
        /// comes in several answers may have four times as many.
        public var maximumAnswerSize = 8 << 20

        /// Reads the time of day, which signatures hold.
        package var wallClock: @Sendable () -> Date = { Date() }
        /// Bytes that are read, hashed and written at a time. S3 takes chunks of 8 KiB or more.
        package var chunkSize = 256 << 10

        /// Amazon S3 over TLS.
        public init() {}
    }
}
