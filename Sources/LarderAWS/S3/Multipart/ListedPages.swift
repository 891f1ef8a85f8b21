import Larder

/// The answers that make one list. They end where the storage goes on at a place for the second time, and at a bound.
struct ListedPages<Marker: Hashable> {
    private static var maximumCount: Int { 10_000 }

    private let maximumSize: Int
    private var size = 0
    private var markers: Set<Marker> = []

    /// - Parameter maximumSize: How many bytes all answers may have together.
    init(maximumSize: Int) { self.maximumSize = maximumSize }

    /// Notes an answer of so many bytes.
    ///
    /// - Parameter next: Where the list goes on; nil where it has ended.
    mutating func add(_ bytes: Int, next: Marker?) throws(ObjectError) {
        size += bytes
        guard size <= maximumSize, markers.count < Self.maximumCount else {
            throw ObjectError(
                .unusableAnswer,
                "The storage's list has more than \(maximumSize) bytes, or more than \(Self.maximumCount) answers.")
        }
        guard let next, !markers.insert(next).inserted else { return }
        throw ObjectError(.unusableAnswer, "The storage goes on with its list where it has been before.")
    }
}
