// What LarderRecords uses of swift-crypto, which gives Apple's CryptoKit there. It is type-checked and never run.
public enum SHA256 {
    public struct Digest: Sequence, Sendable {
        public func makeIterator() -> IndexingIterator<[UInt8]> { [].makeIterator() }
    }

    public static func hash(data: some Sequence<UInt8>) -> Digest { Digest() }
}
