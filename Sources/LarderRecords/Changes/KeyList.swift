/// Cache keys, one after the other in one piece of memory; each becomes a `String` when it is asked for.
package struct KeyList: Sendable, Hashable, RandomAccessCollection {
    private var bytes: [UInt8] = []
    /// Where each key ends.
    private var ends: [Int] = []

    package init() {}

    package init(_ keys: some Sequence<String>) {
        for var key in keys { key.withUTF8 { append(UnsafeRawBufferPointer($0)) } }
    }

    package var startIndex: Int { 0 }
    package var endIndex: Int { ends.count }

    package subscript(index: Int) -> String { withKey(index) { String(decoding: $0, as: UTF8.self) } }

    mutating func append(_ key: UnsafeRawBufferPointer) {
        bytes.append(contentsOf: key)
        ends.append(bytes.count)
    }

    mutating func reserveCapacity(_ count: Int, byteCount: Int) {
        ends.reserveCapacity(count)
        bytes.reserveCapacity(byteCount)
    }

    func withKey<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        let start = index == 0 ? 0 : ends[index - 1]
        let end = ends[index]
        return try bytes.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[start..<end])) }
    }
}
