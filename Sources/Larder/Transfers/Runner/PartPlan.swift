import LarderOperations

extension PartPlan {
    /// The plan of an attempt.
    ///
    /// - Throws: `.invalidTransfer` where there would be more parts than can be gone through.
    init(of size: Int64, in partSize: Int64) throws(LarderError) {
        guard let plan = PartPlan(size: size, partSize: partSize) else {
            throw LarderError(
                .invalidTransfer, "\(size) bytes cannot be moved in parts of \(partSize); use larger parts")
        }
        self = plan
    }

    /// The size of parts: the wanted size, or as much more as it takes to stay below the greatest number of parts, in
    /// whole mebibytes.
    ///
    /// - Returns: Nil where not even the largest parts are enough.
    static func partSize(wanted: Int64, size: Int64, limits: ObjectLimits) -> Int64? {
        guard size >= 0, size <= limits.largestObject else { return nil }
        let count = Int64(max(1, limits.maximumParts))
        let least = size / count + (size % count == 0 ? 0 : 1)
        let mebibyte: Int64 = 1 << 20
        // No part is larger than the largest, so that rounding up to more than that is not needed.
        guard least <= limits.largestPart else { return nil }
        let (rounded, isPastAll) = ((least - 1) / mebibyte + 1).multipliedReportingOverflow(by: mebibyte)
        let enough = least <= wanted ? wanted : isPastAll ? limits.largestPart : rounded
        return min(max(enough, limits.smallestPart, 1), limits.largestPart)
    }
}
