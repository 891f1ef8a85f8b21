package import LarderGraphQL

/// A plan laid out for the loops that parse and read: plain values in contiguous arrays, names as UTF-8.
///
/// Made once a plan, and shared by all parses and reads along it.
package final class PlanLayout: Sendable {
    package let plan: Plan
    /// By case: the program's own fields.
    let shapes: ShapeTable
    /// Distinct type names; types are referred to by their index.
    let typeNames: [String]
    let selections: FlatBuffer<SelectionOp>
    let cases: FlatBuffer<CaseOp>
    let fields: FlatBuffer<FieldOp>
    let types: FlatBuffer<TypeOp>
    let keyFields: FlatBuffer<Int32>
    /// The fields of each case that has many, by the bytes of their response keys.
    let orderedFields: FlatBuffer<Int32>
    /// All names, one after the other.
    let text: FlatBuffer<UInt8>
    /// Whether objects of any case have versions.
    let hasVersions: Bool

    package init(_ plan: Plan) {
        self.plan = plan
        shapes = ShapeTable(plan.cases.map { ObjectShape($0.names) })
        var draft = LayoutDraft()
        for selection in plan.selections { draft.append(selection) }
        for planned in plan.cases { draft.append(planned, plan.fields[planned.fields]) }
        for field in plan.fields { draft.append(field) }
        draft.orderFields()
        typeNames = draft.typeNames
        selections = FlatBuffer(draft.selections)
        cases = FlatBuffer(draft.cases)
        fields = FlatBuffer(draft.fields)
        types = FlatBuffer(draft.types)
        keyFields = FlatBuffer(draft.keyFields)
        orderedFields = FlatBuffer(draft.orderedFields)
        text = FlatBuffer(draft.text)
        hasVersions = plan.cases.contains { $0.version != nil }
    }

    /// Whether the root of a response is an object of the cache: the root of all queries, or the one of a fragment.
    var storesRoot: Bool { plan.kind == .query }

    /// The keys in the answer of what the program asks of the root, whose type is one.
    package var rootKeys: [String] {
        plan.selections[plan.root].types.first.map { plan.cases[$0.caseIndex].names } ?? []
    }

    /// About how much memory it takes, in bytes, its plan included.
    var size: Int {
        selections.count * MemoryLayout<SelectionOp>.stride * 4 + types.count * MemoryLayout<TypeOp>.stride * 3
            + cases.count * 256 + fields.count * (MemoryLayout<FieldOp>.stride + MemoryLayout<FieldPlan>.stride + 64)
            + text.count * 3 + plan.keys.count * 256 + plan.policies.count * 512
    }

    /// A name's bytes, valid as long as this lives.
    ///
    /// Safe: the layout owns the text, which never changes, and its draft made every span of text that it had appended.
    @inline(__always)
    func bytes(of name: NameSpan) -> UnsafeBufferPointer<UInt8> {
        unsafe text[Int(name.start)..<Int(name.start + name.count)]
    }

    func path(_ entries: [PathEntry]) -> ResponsePath {
        ResponsePath(
            entries.map { entry in
                switch entry {
                case .field(let index): .field(plan.fields[Int(index)].responseKey)
                case .index(let index): .index(Int(index))
                }
            })
    }
}

/// One step of the way to a value, as the loops keep it.
enum PathEntry {
    /// An index into the plan's fields.
    case field(Int32)
    case index(Int32)
}

/// A name in `PlanLayout.text`.
struct NameSpan {
    var start: Int32
    var count: Int32
}

struct SelectionOp {
    var typeStart: Int32
    var typeCount: Int32
    /// The case of types that the schema does not know, or -1.
    var unknownTypeCase: Int32
    /// The only type possible here, as an index into `types`, or -1.
    var onlyType: Int32
}

struct TypeOp {
    var name: NameSpan
    /// In `PlanLayout.typeNames`.
    var number: Int32
    var caseIndex: Int32
}

struct CaseOp: BitwiseCopyable {
    var fieldStart: Int32
    var fieldCount: Int32
    /// How many of the fields are the program's own.
    var visibleCount: Int32
    /// In `PlanLayout.keyFields`; the count is 0 for objects without identity.
    var keyStart: Int32
    var keyCount: Int32
    /// Whether no field is an object or a list of objects.
    var hasOnlyLeaves: Bool
    /// As `CasePlan.parts`.
    var parts: PartPolicy?
    /// The least of the program's own fields, in seconds; `ReceivedTime.anyAge` where none has a maximum age.
    var maxAge: UInt32
    /// As `CasePlan.version` and `deleted`; -1 where the objects have none.
    var version: Int32
    var deleted: Int32
    /// In `PlanLayout.orderedFields`, or -1: few fields are looked through one by one.
    var orderStart: Int32 = -1

    /// With more fields than this they are put in order.
    static let fewFields: Int32 = 32
}

struct FieldOp: BitwiseCopyable {
    enum Content: UInt8 {
        case typename, int, float, string, boolean, id, enumeration, custom, object
    }

    var responseKey: NameSpan
    var content: Content
    /// The tags that a stored value of this content may have, a bit for each; none for objects.
    var leafTags: UInt16
    var listDepth: UInt8
    /// As `FieldTypeShape.nonNull`.
    var nonNull: UInt32
    /// Or -1 if only the cache asked for the field.
    var slot: Int32
    /// In `Plan.keys`, or -1.
    var key: Int32
    /// In `PlanLayout.selections`, or -1.
    var selection: Int32
    /// In `Plan.policies`, or -1.
    var policy: Int32
    /// As `FieldPlan.parts`.
    var parts: PartPolicy?
    /// As `FieldPlan.maxAge`; `ReceivedTime.anyAge` where it has none.
    var maxAge: UInt32

    /// Whether the value is neither a list nor an object.
    @inline(__always)
    var isLeaf: Bool { listDepth == 0 && content != .object }

    @inline(__always)
    func isNonNull(_ level: Int) -> Bool { nonNull & (1 << UInt32(truncatingIfNeeded: level)) != 0 }
}

extension FieldOp.Content {
    /// What the parser stores for each: what is stored otherwise was stored under another schema.
    fileprivate var leafTags: UInt16 {
        let tags: [ValueTag] =
            switch self {
            case .object: []
            case .typename, .string, .enumeration: [.string, .farString]
            case .boolean: [.no, .yes]
            case .int: [.smallInt, .int, .number]
            case .float: [.smallInt, .int, .float, .number]
            case .id: [.smallInt, .int, .number, .string, .farString]
            case .custom:
                [.no, .yes, .smallInt, .int, .float, .number, .string, .json, .farString, .farJSON]
            }
        return tags.reduce(0) { $0 | 1 << UInt16($1.rawValue) }
    }
}

private struct LayoutDraft {
    var selections: [SelectionOp] = []
    var cases: [CaseOp] = []
    var fields: [FieldOp] = []
    var types: [TypeOp] = []
    var keyFields: [Int32] = []
    var orderedFields: [Int32] = []
    var text: [UInt8] = []
    var typeNames: [String] = []
    private var typeNumbers: [String: Int32] = [:]

    mutating func append(_ selection: SelectionPlan) {
        let start = Int32(types.count)
        for type in selection.types {
            let number = typeNumbers[type.name] ?? Int32(typeNames.count)
            if number == Int32(typeNames.count) {
                typeNumbers[type.name] = number
                typeNames.append(type.name)
            }
            types.append(TypeOp(name: span(type.name), number: number, caseIndex: Int32(type.caseIndex)))
        }
        selections.append(
            SelectionOp(
                typeStart: start, typeCount: Int32(selection.types.count),
                unknownTypeCase: Int32(selection.unknownTypeCase ?? -1),
                onlyType: selection.isConcrete ? start : -1))
    }

    mutating func append(_ planned: CasePlan, _ ownFields: ArraySlice<FieldPlan>) {
        let keys = planned.keyFields ?? []
        cases.append(
            CaseOp(
                fieldStart: Int32(planned.fields.lowerBound), fieldCount: Int32(planned.fields.count),
                visibleCount: Int32(planned.names.count), keyStart: Int32(keyFields.count), keyCount: Int32(keys.count),
                hasOnlyLeaves: !ownFields.contains { if case .object = $0.content { true } else { false } },
                parts: planned.parts,
                maxAge: ownFields.lazy.filter { $0.slot != nil }.map { ReceivedTime.maxAge($0.maxAge) }.min()
                    ?? ReceivedTime.anyAge, version: Int32(planned.version ?? -1),
                deleted: Int32(planned.deleted ?? -1)))
        keyFields.append(contentsOf: keys.map(Int32.init))
    }

    mutating func append(_ field: FieldPlan) {
        let (content, selection): (FieldOp.Content, Int) =
            switch field.content {
            case .typename: (.typename, -1)
            case .leaf(.int): (.int, -1)
            case .leaf(.float): (.float, -1)
            case .leaf(.string): (.string, -1)
            case .leaf(.boolean): (.boolean, -1)
            case .leaf(.id): (.id, -1)
            case .leaf(.enumeration): (.enumeration, -1)
            case .leaf(.custom): (.custom, -1)
            case .object(let selection): (.object, selection)
            }
        fields.append(
            FieldOp(
                responseKey: span(field.responseKey), content: content, leafTags: content.leafTags,
                listDepth: UInt8(field.type.listDepth), nonNull: field.type.nonNull, slot: Int32(field.slot ?? -1),
                key: Int32(field.key ?? -1),
                selection: Int32(selection), policy: Int32(field.policy ?? -1), parts: field.parts,
                maxAge: ReceivedTime.maxAge(field.maxAge)))
    }

    mutating func orderFields() {
        for number in cases.indices where cases[number].fieldCount > CaseOp.fewFields {
            let planned = cases[number]
            cases[number].orderStart = Int32(orderedFields.count)
            let range = planned.fieldStart..<(planned.fieldStart + planned.fieldCount)
            orderedFields.append(
                contentsOf: range.sorted {
                    responseKey(of: $0).lexicographicallyPrecedes(responseKey(of: $1))
                })
        }
    }

    private func responseKey(of field: Int32) -> ArraySlice<UInt8> {
        let span = fields[Int(field)].responseKey
        return text[Int(span.start)..<Int(span.start + span.count)]
    }

    private mutating func span(_ name: String) -> NameSpan {
        let start = text.count
        text.append(contentsOf: name.utf8)
        return NameSpan(start: Int32(start), count: Int32(text.count - start))
    }
}
