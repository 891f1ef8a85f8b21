import Larder
import LarderTestSupport
import Testing

@Suite("CRC-32C")
struct CRC32CTests {
    // RFC 3720, appendix B.4, which prints the bytes of a checksum in the order in which they are sent: lowest first.
    static let vectors: [(bytes: [UInt8], checksum: UInt32)] = [
        ([UInt8](repeating: 0, count: 32), 0x8A91_36AA),
        ([UInt8](repeating: 0xFF, count: 32), 0x62A8_AB43),
        (Array(0..<32), 0x46DD_794E),
        (Array((0..<32).reversed()), 0x113F_DB5C),
        (
            [
                0x01, 0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
                0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            ], 0xD996_3A56
        ),
        (Array("123456789".utf8), 0xE306_9283),
        ([], 0),
    ]

    @Test("The size of parts is known where each part's is, also where that is nothing")
    func partSizes() {
        func size(_ sizes: Int64?...) -> Int64? {
            PartsSummary.size(sizes.map { UploadedPart(number: 1, size: $0, etag: "e") })
        }
        #expect(size(7, 0, 5) == 12)
        #expect(size(0) == 0)
        #expect(size(7, nil) == nil)
        #expect(size(7, -1) == nil)
        #expect(size(.max, 1) == nil)
    }

    @Test("What parts say of the whole is known only where each part's checksum is")
    func partChecksums() {
        let known = UploadedPart(number: 1, size: 3, etag: "a", crc32c: 7)
        let unknown = UploadedPart(number: 2, size: 3, etag: "b")
        let (whole, none) = (PartsSummary([known])?.crc32c, PartsSummary([known, unknown])?.crc32c)
        #expect(whole == 7 && none == nil)
    }

    @Test("Bytes that do not lie side by side in memory have the checksum of the same bytes that do")
    func scattered() {
        // The bytes of the one are those of the other from the end.
        let bytes: ReversedCollection<[UInt8]> = Self.vectors[3].bytes.reversed()
        #expect(CRC32C(of: bytes).value == Self.vectors[2].checksum)
    }

    @Test("The checksums of RFC 3720 come out", arguments: vectors.indices)
    func published(index: Int) {
        let (bytes, checksum) = Self.vectors[index]
        #expect(CRC32C(of: bytes).value == checksum)
        #expect(byTables(bytes) == checksum)
    }

    @Test("The processor's instructions and the tables agree, at every length and alignment")
    func agreement() {
        let seed = TestSeed.of("checksum agreement")
        var numbers = SeededNumbers(seed: seed)
        // Around where the lanes begin, and well past it.
        let lengths = Array(0...40) + [49_143, 49_151, 49_152, 49_153, 49_160, 98_303, 98_304, 150_001]
        for length in lengths {
            let shift = Int.random(in: 0..<8, using: &numbers)
            let bytes = (0..<(length + shift)).map { _ in UInt8.random(in: 0...255, using: &numbers) }
            let part = Array(bytes[shift...])
            var whole = CRC32C()
            bytes.withUnsafeBytes { whole.update(UnsafeRawBufferPointer(rebasing: $0[shift...])) }
            #expect(whole.value == byTables(part), "length \(length), shift \(shift), seed \(seed)")
        }
    }

    @Test("Bytes that come in pieces have the checksum of the whole")
    func pieces() {
        let seed = TestSeed.of("checksum pieces")
        var numbers = SeededNumbers(seed: seed)
        let bytes = (0..<200_000).map { _ in UInt8.random(in: 0...255, using: &numbers) }
        var (checksum, at) = (CRC32C(), 0)
        while at < bytes.count {
            let end = min(bytes.count, at + Int.random(in: 0..<70_000, using: &numbers))
            bytes.withUnsafeBytes { checksum.update(UnsafeRawBufferPointer(rebasing: $0[at..<end])) }
            at = end
        }
        #expect(checksum == CRC32C(of: bytes), "seed \(seed)")
    }

    @Test("The checksum of a whole follows from its parts' checksums")
    func combination() {
        let seed = TestSeed.of("checksum combination")
        var numbers = SeededNumbers(seed: seed)
        for _ in 0..<200 {
            let bytes = (0..<Int.random(in: 0..<3_000, using: &numbers)).map { _ in
                UInt8.random(in: 0...255, using: &numbers)
            }
            let cut = Int.random(in: 0...bytes.count, using: &numbers)
            let combined = CRC32C.combine(
                CRC32C(of: bytes[..<cut]).value, CRC32C(of: bytes[cut...]).value, length: Int64(bytes.count - cut))
            #expect(combined == CRC32C(of: bytes).value, "cut \(cut) of \(bytes.count), seed \(seed)")
        }
    }

    @Test("Parts of more than four gigabytes are combined too")
    func longCombination() {
        // Zeros, by adding one part to itself again and again.
        var (checksum, length) = (CRC32C(of: [UInt8](repeating: 0, count: 1 << 20)).value, Int64(1) << 20)
        var doubled = CRC32C(of: [0]).value
        for power in 0..<33 { doubled = CRC32C.combine(doubled, doubled, length: Int64(1) << power) }
        for _ in 20..<33 {
            checksum = CRC32C.combine(checksum, checksum, length: length)
            length *= 2
        }
        #expect(length == 1 << 33)
        #expect(checksum == doubled)
    }

    private func byTables(_ bytes: [UInt8]) -> UInt32 {
        var checksum = CRC32C()
        bytes.withUnsafeBytes { checksum.updateByTables($0) }
        return checksum.value
    }
}
