/// An operation compiled for one schema and one outcome of its `@include` and `@skip` conditions.
///
/// Selections of the same field are merged, fragments are dissolved, and what is left is a tree in flat arrays:
/// a *selection* is what is asked of a value, its *cases* say what that means for each concrete type, and a
/// case's *fields* lead to the selections below. The tree is finite: every walk along it is bounded by `depth`.
package final class Plan: Sendable {
    package let kind: OperationKind
    /// What is asked of the root; the others are reached from it.
    package let root: Int
    package let selections: [SelectionPlan]
    package let cases: [CasePlan]
    package let fields: [FieldPlan]
    /// The distinct fields with arguments that the plan stores and reads, each once.
    package let keys: [FieldKeyTemplate]
    package let policies: [PolicyTemplate]
    /// What must hold of the sizes of pages that are asked for.
    package let pageLimits: [PageLimit]
    /// How many objects and lists enclose the deepest leaf; at most `greatestDepth`.
    package let depth: Int

    /// What walks a plan recurses as deep, which fits the smallest stack of any thread (512 KiB) in debug builds too,
    /// where a level takes 3.5 KiB at most.
    package static let greatestDepth = 120
    /// How many fields a plan may have, each counted once for each combination of types and selections around it.
    package static let greatestFieldCount = 100_000
    /// How many selections and types may be looked at while a plan is made. Operations that people write take a few
    /// thousand.
    package static let greatestWork = 2_000_000

    init(
        kind: OperationKind, root: Int, selections: [SelectionPlan], cases: [CasePlan], fields: [FieldPlan],
        keys: [FieldKeyTemplate], policies: [PolicyTemplate], pageLimits: [PageLimit], depth: Int
    ) {
        self.kind = kind
        self.root = root
        self.selections = selections
        self.cases = cases
        self.fields = fields
        self.keys = keys
        self.policies = policies
        self.pageLimits = pageLimits
        self.depth = depth
    }
}

/// What is asked of one object-valued position.
package struct SelectionPlan: Sendable {
    /// The type that the schema gives to the position: an object, an interface or a union.
    package let staticType: SchemaIndex.TypeID
    package let staticTypeName: String
    /// True if the position's value can only be of `staticType`.
    package let isConcrete: Bool
    /// Every concrete type that the schema allows here, with the case that answers it.
    package let types: [ConcreteType]
    /// For concrete types that the schema does not know (a server may be newer than the program); nil where the
    /// selection has a fragment on an interface or union, of which it cannot be decided.
    package let unknownTypeCase: Int?

    package struct ConcreteType: Sendable {
        package let name: String
        package let caseIndex: Int
    }
}

/// The fields that are asked of the objects of some concrete types.
package struct CasePlan: Sendable {
    /// In `Plan.fields`: first the program's own in the order of the answer, then those added for the cache.
    package let fields: Range<Int>
    /// The names of the program's own fields.
    package let names: [String]
    /// The fields, in `Plan.fields`, whose values identify an object; nil for objects without identity.
    package let keyFields: [Int]?
    /// What becomes of parts of these types that come again, where the field does not say; nil where neither does.
    package let parts: PartPolicy?
    /// The field, in `Plan.fields`, that tells the object's version; nil where its type has none.
    package let version: Int?
    /// The field, in `Plan.fields`, that tells whether the object is no more.
    package let deleted: Int?
}

/// One field of one case.
package struct FieldPlan: Sendable {
    package let name: String
    package let responseKey: String
    /// Where the value stands in the answer; nil if only the cache asked for it.
    package let slot: Int?
    package let type: FieldTypeShape
    package let content: Content
    /// In `Plan.keys`; nil for `__typename`, which is no stored field.
    package let key: Int?
    /// In `Plan.policies`: how to find the object without having fetched this field.
    package let policy: Int?
    /// What becomes of the part in this field when one comes again; nil where the part's type says it, or nothing does.
    package let parts: PartPolicy?
    /// For how many seconds the value may be used once it came; nil where the schema does not say it.
    package let maxAge: Int?

    package enum Content: Sendable, Hashable {
        case typename
        case leaf(Leaf)
        /// An index into `Plan.selections`.
        case object(selection: Int)
    }

    package enum Leaf: Sendable, Hashable {
        case int, float, string, boolean, id, enumeration
        /// A scalar of the schema's own: any JSON.
        case custom
    }
}

/// The lists around a field's type and which of its levels may be null.
package struct FieldTypeShape: Sendable, Hashable {
    /// How many lists enclose the innermost type: 2 for `[[Float!]!]`.
    package let listDepth: Int
    /// Bit n is set if level n, counted from the outermost, is non-null: 0b110 for `[[Float!]!]`.
    package let nonNull: UInt32

    package static let maximumListDepth = 16

    package init(listDepth: Int, nonNull: UInt32) {
        self.listDepth = listDepth
        self.nonNull = nonNull
    }

    @inlinable
    package func isNonNull(level: Int) -> Bool { nonNull & (1 << UInt32(level)) != 0 }
}
