extension String {
    /// Whether the bytes of UTF-8 are the same. `==` also finds texts equal that differ in how they compose characters.
    package func hasSameBytes(as other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        let answer = utf8.withContiguousStorageIfAvailable { left in
            other.utf8.withContiguousStorageIfAvailable { right in
                UnsafeRawBufferPointer(left).hasSameBytes(as: UnsafeRawBufferPointer(right))
            }
        }
        // Texts of Foundation's own may not lie in one piece.
        if case .some(.some(let answer)) = answer { return answer }
        return utf8.elementsEqual(other.utf8)
    }
}

extension UnsafeRawBufferPointer {
    /// Eight bytes at a time, the last few by themselves. Safe: each load lies within both, which are as long.
    fileprivate func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var offset = 0
        while offset + 8 <= count {
            guard
                loadUnaligned(fromByteOffset: offset, as: UInt64.self)
                    == other.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            else { return false }
            offset += 8
        }
        while offset < count {
            guard self[offset] == other[offset] else { return false }
            offset += 1
        }
        return true
    }
}

extension Hasher {
    /// Takes in a text by its bytes, as `hasSameBytes` compares it.
    package mutating func combineBytes(of text: String) {
        var text = text
        text.withUTF8 { combine(bytes: UnsafeRawBufferPointer($0)) }
        combine(0xFF as UInt8)
    }
}

/// A text that is equal to another only if its bytes are; for the keys of dictionaries and sets.
package struct ExactText: Sendable, Hashable {
    package let text: String

    package init(_ text: String) { self.text = text }

    package static func == (left: ExactText, right: ExactText) -> Bool { left.text.hasSameBytes(as: right.text) }

    package func hash(into hasher: inout Hasher) { hasher.combineBytes(of: text) }
}
