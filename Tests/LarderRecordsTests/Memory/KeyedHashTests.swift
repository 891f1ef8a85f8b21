import Testing

@testable import LarderRecords

@Suite("Keyed hashes")
struct KeyedHashTests {
    private func hash(_ bytes: [UInt8], _ keyed: KeyedHash = .ofProcess) -> UInt64 {
        unsafe bytes.withUnsafeBytes { unsafe keyed.hash($0) }
    }

    @Test("Texts that differ in one bit, or in length, have different hashes, whatever their length")
    func bits() {
        for count in 0...200 {
            let text = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37) }
            let hashes = (0..<count * 8).map { bit in
                var other = text
                other[bit / 8] ^= 1 << (bit % 8)
                return hash(other)
            }
            #expect(Set(hashes + [hash(text)]).count == count * 8 + 1, "\(count) bytes")
            #expect(hash(text) == hash(text))
        }
        for byte in [0, 1, 255] as [UInt8] {
            let lengths = (0...300).map { hash(Array(repeating: byte, count: $0)) }
            #expect(Set(lengths).count == lengths.count)
        }
    }

    @Test("The order of what is mixed counts, and another key gives other hashes")
    func keys() {
        let (one, other) = (KeyedHash(first: 1, second: 2), KeyedHash(first: 3, second: 2))
        #expect(one.mix(5, 6) != one.mix(6, 5))
        #expect(one.mix(5, 6) != other.mix(5, 6))
        for count in [0, 5, 12, 16, 40, 100] {
            let text = Array(repeating: UInt8(7), count: count)
            #expect(hash(text, one) != hash(text, other))
        }
    }
}
