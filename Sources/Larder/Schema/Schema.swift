import LarderGraphQL

/// A GraphQL schema, with what identifies its objects.
///
/// Which fields identify an object is said by the schema or by the program: `id` where a type has it, other fields by
/// `@typePolicy(keyFields: "isbn")` on the type. `@fieldPolicy(forField: "book", keyArgs: ["isbn"])` on a type says
/// that the field's arguments name the object it returns, so that it is found although this field was never fetched.
/// What becomes of an object without identity when one comes again in the same place is said by `parts: "merge"` or
/// `parts: "replace"` in either: see <doc:Identity>.
///
/// Parsing a large schema takes tens of milliseconds. `Store.open` keeps it compiled, so that it is done once.
public struct Schema: Sendable, Hashable {
    package private(set) var index: SchemaIndex

    /// - Parameter texts: In the schema definition language; any may extend the types of any other, so that policies
    ///   can be kept apart from the server's own text.
    /// - Throws: `.schema`, with line and column.
    public init(parsing texts: String...) throws(LarderError) { try self.init(parsing: texts) }

    /// As `init(parsing:)`, with the texts' names for errors.
    public init(parsing texts: [String], names: [String] = []) throws(LarderError) {
        do { index = try SchemaIndex(parsing: texts, sourceNames: names) } catch { throw LarderError(error) }
    }

    /// A schema that was compiled before.
    ///
    /// - Throws: `.schema` where the bytes are damaged or of another version of Larder.
    public init(compiled bytes: [UInt8]) throws(LarderError) {
        do { index = try SchemaIndex(serialized: bytes) } catch { throw LarderError(error) }
    }

    /// The schema in a form that loads several times faster than its text parses.
    public var compiled: [UInt8] { index.serialized() }

    /// The key under which the cache has a field that was asked with these arguments, each as the schema says: an `ID`
    /// may be given as a number, and one value stands for a list of one. Arguments that the schema keeps out of the
    /// key of a list are left out.
    ///
    /// ```swift
    /// try await app.remove(field: schema.fieldKey("recipe", of: "Query", arguments: ["id": 7]))
    /// ```
    ///
    /// - Parameters:
    ///   - field: The name of a field of that type, not an alias.
    ///   - type: The name of a type of the schema.
    ///   - arguments: None for a field without arguments.
    /// - Throws: `.schema` where there is no such type, field or argument.
    public func fieldKey(
        _ field: String, of type: String, arguments: [String: Value] = [:]
    ) throws(LarderError) -> FieldKey {
        do { return try index.fieldKey(field, of: type, arguments) } catch { throw LarderError(error) }
    }

    /// Says which fields identify the objects of a type, in place of the schema's own.
    ///
    /// - Parameters:
    ///   - keyFields: None for objects without identity, which belong to the field that holds them.
    ///   - type: The name of a type of the schema.
    public mutating func setKeyFields(_ keyFields: [String], for type: String) throws(LarderError) {
        do { try index.setKeyFields(keyFields, for: type) } catch { throw LarderError(error) }
    }

    /// Says which arguments of a field choose a page of the list that it returns.
    ///
    /// - Parameters:
    ///   - arguments: A token and a limit, as `["limit", "nextToken"]`, where the token's argument and the page's field
    ///     have one name; `first`, `after`, `last` and `before` of a Relay connection; `offset` and a limit; or `page`
    ///     and a size.
    ///   - keyArguments: The arguments that tell one list from another; where none is given, every argument that is not
    ///     in `arguments` does.
    ///   - maxLimit: The largest page that the server gives. A larger one is refused before it is asked for. Where
    ///     absent it is 1,000 for token lists, which is AppSync's, and not known for others.
    ///   - field: The name of a field of that type.
    ///   - type: The name of a type of the schema.
    public mutating func setPagination(
        _ arguments: [String], keyArguments: [String] = [], maxLimit: Int? = nil, forField field: String,
        of type: String
    ) throws(LarderError) {
        let policy = FieldPolicy(
            keyArgs: keyArguments.map { ArgumentPath($0) }, paginationArgs: arguments, maxLimit: maxLimit)
        do { try index.setFieldPolicy(policy, forField: field, of: type) } catch { throw LarderError(error) }
    }

    /// Says that the objects of a type have versions, as `@typePolicy(versioned: true)` does: an object whose `_version`
    /// is less than the stored one's is not stored, and one whose `_deleted` is true is no more. See <doc:Identity>.
    ///
    /// - Throws: `.schema` where there is no such type, or where it has no field `_version`.
    public mutating func setVersioned(_ type: String) throws(LarderError) {
        do { try index.setVersioned(type) } catch { throw LarderError(error) }
    }

    /// Says for how long the fields of a type may be used once a server sent them, in place of the schema's own
    /// `@cacheControl(maxAge:)`: see <doc:Lifecycle>.
    ///
    /// - Parameters:
    ///   - maxAge: In whole seconds. Where it is nil, a type's fields may be used for as long as they are there, and one
    ///     field for as long as its type says.
    ///   - field: One field of the type, which goes before the type; every field of the type where absent.
    ///   - type: An object type, or an interface for the types that say nothing of their own.
    /// - Throws: `.schema` where there is no such type or field.
    public mutating func setMaxAge(
        _ maxAge: Duration?, forField field: String? = nil, of type: String
    ) throws(LarderError) {
        let seconds = maxAge.map { Int(clamping: max(0, $0.components.seconds)) }
        do { try index.setMaxAge(seconds, forField: field, of: type) } catch { throw LarderError(error) }
    }

    /// Says what becomes of the objects of a type that have no identity, wherever a single one comes again.
    ///
    /// On an interface it is said of all types that implement it and say nothing of their own.
    public mutating func setPartPolicy(_ policy: PartPolicy, for type: String) throws(LarderError) {
        do { try index.setPartPolicy(policy, for: type) } catch { throw LarderError(error) }
    }

    /// Says what becomes of the object without identity in a field when one comes again. It goes before the policy of
    /// the object's type.
    public mutating func setPartPolicy(
        _ policy: PartPolicy, forField field: String, of type: String
    ) throws(LarderError) {
        do { try index.setPartPolicy(policy, forField: field, of: type) } catch { throw LarderError(error) }
    }
}
