import Testing

@testable import LarderRecords

@Suite("The record format as its article describes it", .timeLimit(.minutes(1)))
struct RecordFormatTests {
    /// The sums are those of a script that follows the article. Of so many bytes the first is 1, and each is 7 more than
    /// the one before.
    @Test(
        "The checksum of bytes and a seed is the documented one",
        arguments: [
            (0, 0, 0x0000_0000), (0, 0x1_0000_0005, 0xa3bf_72ec), (1, 0, 0x1758_a31d), (1, 0x1_0000_0005, 0x69e5_d61c),
            (8, 0, 0xd716_cde5), (8, 0x1_0000_0005, 0x88ab_0ba9), (31, 0, 0x1ecd_80d5),
            (31, 0x1_0000_0005, 0x2d20_d28b), (32, 0, 0xf574_aacf), (32, 0x1_0000_0005, 0x79ae_3585),
            (63, 0, 0xdb96_e7a5), (63, 0x1_0000_0005, 0xd413_7758), (64, 0, 0xd44b_b00b),
            (64, 0x1_0000_0005, 0xa35b_e43a), (100, 0, 0xa1a6_146a), (100, 0x1_0000_0005, 0x0522_04d6),
        ] as [(Int, UInt64, UInt32)])
    func checksums(count: Int, seed: UInt64, expected: UInt32) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + 1) }
        let sum = bytes.withUnsafeBytes { checksum($0, seed: seed) }
        #expect(sum == expected)
    }

    @Test("The counters have a 1 in bytes 4 to 7 where their generation is superseded, and otherwise a 0")
    func superseded() throws {
        var state = GenerationState.fresh()
        #expect(Array(state.encoded[..<8]) == [1, 0, 0, 0, 0, 0, 0, 0])
        var mark = try GenerationMark(state.encoded)
        mark.supersede()
        #expect(Array(mark.bytes[..<8]) == [1, 0, 0, 0, 1, 0, 0, 0])
        state.isSuperseded = true
        #expect(state.encoded == mark.bytes)
    }
}
