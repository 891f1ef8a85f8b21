/// A place in a GraphQL text. Lines and columns count from 1; columns are Unicode scalars.
package struct Location: Sendable, Hashable, Comparable, CustomStringConvertible {
    package var line: Int
    package var column: Int

    package init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }

    /// The location of what was made by a program and never stood in a text: 0:0.
    package static let generated = Location(line: 0, column: 0)

    package static func < (left: Location, right: Location) -> Bool {
        (left.line, left.column) < (right.line, right.column)
    }

    package var description: String { "\(line):\(column)" }
}

/// A property that takes no part in the equality of what contains it: two documents with the same meaning are
/// equal wherever their parts stand in the text.
@propertyWrapper
package struct NotCompared<Wrapped: Sendable>: Sendable, Hashable {
    package var wrappedValue: Wrapped

    package init(wrappedValue: Wrapped) { self.wrappedValue = wrappedValue }

    package static func == (left: Self, right: Self) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
}
