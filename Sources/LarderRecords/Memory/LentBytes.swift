/// Bytes that a caller lends for the length of a call: what JSON is read from.
///
/// Safe: a place is checked by an assertion wherever it is used, so that debug builds and tests find one that a release
/// build would follow. The caller keeps the bytes for as long as anything here has them.
@safe struct LentBytes {
    private let start: UnsafePointer<UInt8>
    let count: Int

    init(_ start: UnsafePointer<UInt8>, count: Int) {
        assert(count >= 0)
        unsafe self.start = unsafe start
        self.count = count
    }

    @inline(__always)
    subscript(place: Int) -> UInt8 {
        assert(place >= 0 && place < count, "place \(place) of \(count)")
        return unsafe start[place]
    }

    subscript(range: Range<Int>) -> LentBytes {
        assert(range.lowerBound >= 0 && range.upperBound <= count, "\(range) of \(count)")
        return unsafe LentBytes(start + range.lowerBound, count: range.count)
    }

    /// Eight bytes from a place on, as they lie in memory.
    @inline(__always)
    func word(at place: Int) -> UInt64 {
        assert(place >= 0 && place <= count - 8, "eight bytes at \(place) of \(count)")
        return unsafe UnsafeRawPointer(start + place).loadUnaligned(as: UInt64.self)
    }

    /// Copies bytes to memory that has room for them, and may be the same.
    @inline(__always)
    func copy(_ range: Range<Int>, to target: UnsafeMutablePointer<UInt8>) {
        assert(range.lowerBound >= 0 && range.upperBound <= count, "\(range) of \(count)")
        unsafe target.update(from: start + range.lowerBound, count: range.count)
    }

    /// All of them, to be used no longer than they are lent.
    var elements: UnsafeBufferPointer<UInt8> { unsafe UnsafeBufferPointer(start: start, count: count) }

    /// As text; what is not UTF-8 has replacement characters.
    var text: String { unsafe String(decoding: elements, as: UTF8.self) }
}
