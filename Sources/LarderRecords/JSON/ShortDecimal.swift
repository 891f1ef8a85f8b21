/// A decimal number of at most 19 digits, without a sign: a whole number, and how many of its digits stand after the
/// point.
///
/// Nearly all numbers with a point are such. Whether a double keeps one is worked out with whole numbers of 128 bits,
/// ten times as quickly as by texts.
struct ShortDecimal {
    private(set) var significand: UInt64
    private(set) var places: Int

    init(significand: UInt64, places: Int) {
        (self.significand, self.places) = (significand, places)
        while self.places > 0, self.significand > 0 {
            let (quotient, remainder) = self.significand.quotientAndRemainder(dividingBy: 10)
            guard remainder == 0 else { break }
            (self.significand, self.places) = (quotient, self.places - 1)
        }
    }

    /// The double that is nearest, where its shortest description is this number. Nil where it is not, or where that
    /// takes a closer look.
    var exactDouble: Double? {
        guard significand > 0 else { return 0 }
        guard let value = nearest else { return nil }
        // A decimal of 15 significant digits survives the way to a double and back (DBL_DIG).
        if significand < 1_000_000_000_000_000 { return value }
        if places == 0 { return significand < 1 << 53 ? value : nil }
        // No decimal of one digit less is the same double, and of those with as many digits this is the nearest to it.
        let shorter = significand / 10
        for other in [shorter, shorter + 1] {
            guard let neighbour = ShortDecimal(unchanged: other, places: places - 1).nearest, neighbour != value else {
                return nil
            }
        }
        return isNearest(to: value) ? value : nil
    }

    private init(unchanged significand: UInt64, places: Int) {
        (self.significand, self.places) = (significand, places)
    }

    /// The double that is nearest to it, of two the even one; nil for more than 19 places.
    private var nearest: Double? {
        guard places > 0 else { return Double(significand) }
        guard places < Self.powersOfTen.count else { return nil }
        let divisor = Self.powersOfTen[places]
        // Both with their highest bit set, so that the quotient has all 64 bits.
        let (shift, divisorShift) = (significand.leadingZeroBitCount, divisor.leadingZeroBitCount)
        let (dividend, normalized) = (significand << UInt64(shift), divisor << UInt64(divisorShift))
        let isHalved = dividend >= normalized
        let (high, low) = isHalved ? (dividend >> 1, dividend << 63) : (dividend, 0)
        let (quotient, remainder) = normalized.dividingFullWidth((high, low))
        var exponent = divisorShift - shift - 64 + (isHalved ? 1 : 0)
        // 53 of the 64 bits stay.
        var bits = quotient >> 11
        let rest = quotient & 0x7FF
        if rest > 0x400 || rest == 0x400 && (remainder > 0 || bits & 1 == 1) { bits += 1 }
        exponent += 11
        if bits == 1 << 53 { (bits, exponent) = (bits >> 1, exponent + 1) }
        // 19 places do not come near the end of the range.
        return Double(bitPattern: UInt64(exponent + 52 + 1_023) << 52 | bits & (1 << 52 - 1))
    }

    /// Whether no other decimal with as many places is as near to a double.
    private func isNearest(to value: Double) -> Bool {
        // The double is `bits / 2^shift`. Times ten to the places it is `product / 2^shift`.
        let shift = 52 - Int(value.exponent)
        guard (1..<128).contains(shift) else { return false }
        let product = (value.significandBitPattern | 1 << 52).multipliedFullWidth(by: Self.powersOfTen[places])
        let (high, low): (UInt64, UInt64) =
            shift < 64
            ? (significand >> UInt64(64 - shift), significand << UInt64(shift))
            : (significand << UInt64(shift - 64), 0)
        let isGreater = (high, low) >= (product.high, product.low)
        let (greater, less) =
            isGreater ? ((high, low), (product.high, product.low)) : ((product.high, product.low), (high, low))
        let (difference, borrow) = greater.1.subtractingReportingOverflow(less.1)
        let distance = (greater.0 - less.0 - (borrow ? 1 : 0), difference)
        // Less than half of one in the last place.
        let half: (UInt64, UInt64) = shift > 64 ? (1 << UInt64(shift - 65), 0) : (0, 1 << UInt64(shift - 1))
        return distance < half
    }

    /// As many as 64 bits hold.
    private static let powersOfTen: [UInt64] = (0..<20).reduce(into: [1]) { powers, _ in
        if let last = powers.last, powers.count < 20 { powers.append(last * 10) }
    }
}
