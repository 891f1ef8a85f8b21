import LarderGraphQL

/// A field's value as it will be stored, references followed.
enum TakenValue: Sendable, Hashable {
    case null
    /// Of a scalar or an enum, as the source has it.
    case leaf(Value)
    case list([TakenValue])
    case object(TakenObject)
}

/// An object: one with an identity by its key fields alone, another with all that is known of it.
struct TakenObject: Sendable, Hashable {
    var type: SchemaIndex.TypeID
    /// By what a document selects.
    var fields: [ExactText: TakenField]
}

struct TakenField: Sendable, Hashable {
    var field: SourceField
    var value: TakenValue
}
