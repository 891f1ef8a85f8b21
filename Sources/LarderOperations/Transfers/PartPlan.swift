/// How a file is cut into parts: all of one size, but for the last.
package struct PartPlan: Sendable, Hashable {
    /// In bytes.
    package let size: Int64
    package let partSize: Int64
    /// How many parts there are. Their numbers are from 1.
    package let count: Int

    /// More parts than any storage takes, and few enough to go through them.
    static let maximumCount: Int64 = 1 << 20

    /// Nil where the numbers are of no plan: they may come from a damaged file.
    package init?(size: Int64, partSize: Int64) {
        guard size >= 0, partSize > 0 else { return nil }
        let (whole, rest) = size.quotientAndRemainder(dividingBy: partSize)
        guard whole < Self.maximumCount else { return nil }
        (self.size, self.partSize, count) = (size, partSize, Int(whole) + (rest == 0 ? 0 : 1))
    }

    /// The numbers under which bytes are sent: an empty file goes as one part without any.
    package var numbers: ClosedRange<Int> { 1...max(1, count) }

    /// - Parameter number: One of `numbers`, as for the two that follow. Callers check a number from elsewhere first.
    package func offset(of number: Int) -> Int64 {
        precondition(numbers.contains(number), "part \(number) of \(count)")
        // No overflow: the part begins within the file.
        return Int64(number - 1) * partSize
    }

    package func size(of number: Int) -> Int64 { min(partSize, size - offset(of: number)) }

    package func range(of number: Int) -> Range<Int64> { offset(of: number)..<offset(of: number) + size(of: number) }

    /// Whether a part is one of these. The sizes of such parts, each number once, add up to no more than the file's.
    package func has(_ part: StoredPart) -> Bool { numbers.contains(part.number) && part.size == size(of: part.number) }
}
