import Foundation

/// Stands for the id of an object that the server has yet to create.
///
/// It goes wherever the id would: variables, optimistic response, keys of list edits. Mutations that hold it
/// depend on the one that reserved it, whose answer replaces it everywhere: a server sees one in the variables of the
/// mutation that reserved it, or never.
package struct TemporaryID: Sendable, Hashable {
    /// The token: unlike anything a server or a person would write.
    package let text: String

    static let prefix = "larder-temporary-"
    static let length = prefix.utf8.count + 36

    /// A new one.
    package init() { text = Self.prefix + UUID().uuidString.lowercased() }

    /// One that was made before; nil if the text is none.
    package init?(_ text: String) {
        guard text.utf8.count == Self.length, text.utf8.starts(with: Self.prefix.utf8),
            UUID(uuidString: String(text.dropFirst(Self.prefix.count))) != nil
        else { return nil }
        self.text = text
    }
}
