extension String {
    /// Whether the bytes of UTF-8 are the same. `==` also finds texts equal that differ in how they compose characters.
    package func hasSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }
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
