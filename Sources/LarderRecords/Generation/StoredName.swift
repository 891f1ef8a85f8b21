/// A field key or type name, equal only to the same bytes.
///
/// Swift's strings are equal if Unicode holds them to be the same text, however it is composed; arguments that differ
/// in their bytes are different arguments.
struct StoredName: Hashable {
    let text: String

    init(_ text: String) { self.text = text }

    static func == (left: StoredName, right: StoredName) -> Bool {
        left.text.utf8.elementsEqual(right.text.utf8)
    }

    // Strings of the same bytes have the same hash.
    func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
