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

    @Test("No text of a server's makes what comes after it count for nothing, whatever the key")
    func chosen() {
        for _ in 0..<20 {
            let keyed = KeyedHash(first: .random(in: .min ... .max), second: .random(in: .min ... .max))
            for bit in 7..<14 {
                var text = [UInt8](repeating: 0, count: 1 << bit)
                for place in [0, 8, 16, 24] {
                    for number in [0, UInt64(1) << UInt64(bit)] {
                        for byte in 0..<8 { text[place + byte] = UInt8(truncatingIfNeeded: number >> (8 * byte)) }
                        let hashes = (0..<32).map { byte in
                            var other = text
                            other[byte] ^= 0xFF
                            return hash(other, keyed)
                        }
                        #expect(Set(hashes + [hash(text, keyed)]).count == 33)
                    }
                }
            }
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
