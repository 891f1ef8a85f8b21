import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Decimals of up to 19 digits", .timeLimit(.minutes(10)))
struct ShortDecimalTests {
    /// What texts say: the nearest double where its shortest description is the number.
    private func expected(_ text: String) -> Double? {
        guard let value = Double(text), DecimalDigits(value.description) == DecimalDigits(text) else { return nil }
        return value
    }

    private func scanned(_ text: String) throws -> Double? {
        let bytes = Array(text.utf8)
        let number = withGuardedBytes(bytes) { start -> Result<Double?, JSONError> in
            var scanner = JSONScanner(start, count: bytes.count)
            do throws(JSONError) {
                if case .float(let value) = try scanner.number() { return .success(value) }
                return .success(nil)
            } catch { return .failure(error) }
        }
        return try number?.get() ?? nil
    }

    private func text(_ significand: UInt64, _ places: Int) -> String {
        var digits = String(significand)
        while digits.count <= places { digits = "0" + digits }
        return digits.dropLast(places) + "." + digits.suffix(places)
    }

    private func expectSame(_ text: String, _ comment: Comment) throws {
        let (found, expected) = (try scanned(text), expected(text))
        #expect(found?.bitPattern == expected?.bitPattern, "\(text), \(comment)")
    }

    @Test("Numbers of random digits are the doubles that their texts are, or none")
    func random() throws {
        let seed = TestSeed.of("decimals")
        var random = SeededNumbers(seed: seed)
        for _ in 0..<60_000 {
            let digits = random.next() % 20
            let bound = (0..<digits).reduce(1 as UInt64) { power, _ in power * 10 }
            try expectSame(text(random.next() % bound, Int(random.next() % 19) + 1), "seed \(seed)")
        }
    }

    @Test("The shortest description of a double is that double, and with another last digit it is what texts say")
    func described() throws {
        let seed = TestSeed.of("doubles")
        var random = SeededNumbers(seed: seed)
        for _ in 0..<30_000 {
            // From a millionth to some millions of millions.
            let exponent = UInt64(1_023 - 20) + random.next() % 64
            let value = Double(bitPattern: exponent << 52 | random.next() % (1 << 52))
            let description = value.description
            guard !description.contains("e") else { continue }
            #expect(try scanned(description) == value, "seed \(seed)")
            #expect(try scanned("-" + description) == -value, "seed \(seed)")
            for last in 0..<10 { try expectSame(description.dropLast() + "\(last)", "seed \(seed)") }
            try expectSame(description + "5", "seed \(seed)")
            try expectSame(description + "000", "seed \(seed)")
        }
    }

    @Test("Halves between two doubles, ends of ranges and zeroes are what texts say")
    func ends() throws {
        var texts = ["0.0", "-0.0", "0.000", "1.0", "1.10", "10.0", "0.1", "0.3", "9007199254740993.0", "5e-324"]
        texts += ["9007199254740991.5", "9007199254740992.5", "4503599627370496.5", "4503599627370497.5"]
        texts += ["0.0000000000000000001", "0.1234567890123456789", "1844674407370955161.5", "1844674407370955161.6"]
        texts += ["9999999999999999.5", "999999999999999.95", "0.9999999999999999", "0.99999999999999994"]
        texts += ["2.2250738585072014", "123456789012345678901234.5", "1.7976931348623157", "72057594037927936.0"]
        for text in texts { try expectSame(text, "") }
        #expect(try scanned("-0.0")?.sign == .minus)
    }
}
