/// A type of a schema with all its extensions.
package struct SchemaType: Sendable, Hashable {
    package let name: String
    package let kind: TypeKind
    /// Of an object type or an interface, in the order of the text; without the meta field `__typename`.
    package internal(set) var fields: [FieldDefinition]
    /// The interfaces that the type implements.
    package let interfaces: [SchemaIndex.TypeID]
    /// The object types that a value of this type can have, ascending: of an object type itself.
    package internal(set) var possibleTypes: [SchemaIndex.TypeID]
    package let enumValues: [String]
    package let inputFields: [InputDefinition]

    /// What the type's `@typePolicy` says, or the program; nil where neither speaks.
    var declaredKeyFields: [String]?
    /// The fields whose values identify an object of this type; nil where an object has no identity of its own.
    ///
    /// What the type declares; or else what its interfaces declare; or else `id`, where it has a field of that name.
    package internal(set) var keyFields: [String]?
    /// What the type's `@typePolicy` says of parts of this type, or the program.
    var declaredParts: PartPolicy?
    /// What the type declares; or else what its interfaces declare. The policy of a field goes before it.
    package internal(set) var parts: PartPolicy?
    /// Seconds, from `@cacheControl(maxAge:)` on the type, or the program.
    package internal(set) var maxAge: Int?
    /// Whether its objects have versions: the type says so, or an interface of it, or the program.
    package internal(set) var isVersioned: Bool

    /// The index in `fields`, `inputFields` or `enumValues`; a type has one of them at most.
    private let positions: [String: Int]

    init(
        name: String, kind: TypeKind, fields: [FieldDefinition] = [], interfaces: [SchemaIndex.TypeID] = [],
        possibleTypes: [SchemaIndex.TypeID] = [], enumValues: [String] = [], inputFields: [InputDefinition] = [],
        declaredKeyFields: [String]? = nil, keyFields: [String]? = nil, declaredParts: PartPolicy? = nil,
        parts: PartPolicy? = nil, maxAge: Int? = nil, isVersioned: Bool = false
    ) {
        self.name = name
        self.kind = kind
        self.fields = fields
        self.interfaces = interfaces
        self.possibleTypes = possibleTypes
        self.enumValues = enumValues
        self.inputFields = inputFields
        self.declaredKeyFields = declaredKeyFields
        self.keyFields = keyFields
        self.declaredParts = declaredParts
        self.parts = parts
        self.maxAge = maxAge
        self.isVersioned = isVersioned
        var positions: [String: Int] = [:]
        positions.reserveCapacity(fields.count + inputFields.count + enumValues.count)
        for (index, field) in fields.enumerated() { positions[field.name] = index }
        for (index, field) in inputFields.enumerated() { positions[field.name] = index }
        for (index, value) in enumValues.enumerated() { positions[value] = index }
        self.positions = positions
    }

    /// Time: constant.
    package func field(named name: String) -> FieldDefinition? {
        fieldIndex(named: name).map { fields[$0] }
    }

    /// The fields that the cache asks for beside what the program does: what identifies an object, and its version.
    var addedFields: [String] {
        guard let keyFields else { return [] }
        guard isVersioned else { return keyFields }
        return keyFields + VersionField.all.filter { fieldIndex(named: $0) != nil && !keyFields.contains($0) }
    }

    package func inputField(named name: String) -> InputDefinition? {
        guard kind == .inputObject, let index = positions[name] else { return nil }
        return inputFields[index]
    }

    package func hasEnumValue(_ name: String) -> Bool {
        kind == .enumeration && positions[name] != nil
    }

    /// The policies of fields that have one, by the field's name.
    package var fieldPolicies: [String: FieldPolicy] {
        var policies: [String: FieldPolicy] = [:]
        for field in fields { policies[field.name] = field.policy }
        return policies
    }

    func fieldIndex(named name: String) -> Int? {
        kind == .object || kind == .interface ? positions[name] : nil
    }
}
