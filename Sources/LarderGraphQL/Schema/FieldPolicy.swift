/// How the arguments of a field name the object, or the objects, that it returns.
///
/// With `keyArgs` of `["id"]`, `recipe(id: 7)` is the object whose key field is 7, whichever query brought it.
package struct FieldPolicy: Sendable, Hashable {
    /// One for each key field of the returned type, in their order.
    package var keyArgs: [ArgumentPath]
    /// The arguments that choose a page of a list. Where there are any, `keyArgs` name the list, and no object.
    package var paginationArgs: [String]
    /// The largest page that the server gives; nil where the policy does not say.
    package var maxLimit: Int?

    package init(keyArgs: [ArgumentPath], paginationArgs: [String] = [], maxLimit: Int? = nil) {
        self.keyArgs = keyArgs
        self.paginationArgs = paginationArgs
        self.maxLimit = maxLimit
    }
}

/// An argument, or a field inside an argument that is an input object: `id`, `input.id`.
package struct ArgumentPath: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    package var components: [String]

    package init(_ path: String) {
        components = path.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    }

    package init(stringLiteral path: String) { self.init(path) }

    package var description: String { components.joined(separator: ".") }
}

/// What a program knows of an object without identity, a *part*, that comes again in the field that holds it.
///
/// Without a policy, what comes is taken for the object that is there while no field that both have differs, and for
/// another one otherwise.
public enum PartPolicy: String, Sendable, Hashable, CaseIterable, BitwiseCopyable {
    /// It is the same object, changed: the fields that did not come stay. One of another `__typename` is another object
    /// all the same.
    case merge
    /// It is another object: nothing stays of what was there.
    case replace
}

/// The fields by which AppSync tells the versions of an object.
package enum VersionField {
    /// A number that grows with each change.
    package static let version = "_version"
    /// True where the object is no more.
    package static let deleted = "_deleted"
    /// When the server changed the object last, in milliseconds since 1970 by its clock.
    package static let lastChanged = "_lastChangedAt"

    static let all = [version, deleted, lastChanged]
}
