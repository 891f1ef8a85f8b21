/// How a file is cut into parts: all of one size, but for the last.
struct PartPlan: Sendable, Hashable {
    /// In bytes.
    let size: Int64
    let partSize: Int64

    /// How many parts there are. Their numbers are from 1.
    var count: Int { Int((size + partSize - 1) / partSize) }

    func offset(of number: Int) -> Int64 { Int64(number - 1) * partSize }

    func size(of number: Int) -> Int64 { min(partSize, size - offset(of: number)) }

    func range(of number: Int) -> Range<Int64> { offset(of: number)..<offset(of: number) + size(of: number) }

    /// The size that parts are to have: what is wanted, or as much more as it takes to stay below so many, in whole
    /// mebibytes.
    ///
    /// - Returns: Nil where not even the largest parts are enough.
    static func partSize(wanted: Int64, size: Int64, limits: ObjectLimits) -> Int64? {
        guard size <= limits.largestObject else { return nil }
        let count = Int64(max(1, limits.maximumParts))
        let least = size / count + (size % count == 0 ? 0 : 1)
        let mebibyte: Int64 = 1 << 20
        let rounded = least <= wanted ? wanted : (least + mebibyte - 1) / mebibyte * mebibyte
        let partSize = min(max(rounded, limits.smallestPart, 1), limits.largestPart)
        return partSize >= least ? partSize : nil
    }
}
