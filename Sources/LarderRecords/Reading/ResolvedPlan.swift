/// A plan with the numbers that one generation gives to its field keys and type names.
final class ResolvedPlan: Sendable {
    let generation: Generation
    /// By `Plan.keys`; 0 where the generation does not know the key, and so no record has it.
    let fieldIDs: FlatBuffer<FieldID>
    /// By the layout's type names; 0 likewise.
    let typeIDs: FlatBuffer<FieldID>
    /// By case: its part of `reads`.
    let cases: FlatBuffer<CaseReads>
    /// What the program asks of a record, in ascending order of FieldIDs; `__typename` comes last.
    let reads: FlatBuffer<FieldRead>
    /// Whether every name is known.
    let isComplete: Bool
    /// The snapshot in which the names were looked up.
    let resolvedAt: UInt64

    init(
        layout: PlanLayout, fieldKeys: [String], in generation: Generation, resolvedAt: UInt64,
        lookUp: (String) throws -> FieldID?
    ) throws {
        self.generation = generation
        self.resolvedAt = resolvedAt
        let fieldNumbers = try fieldKeys.map { try lookUp($0) ?? 0 }
        let typeNumbers = try layout.typeNames.map { try lookUp($0) ?? 0 }
        isComplete = !fieldNumbers.contains(0) && !typeNumbers.contains(0)
        var reads: [FieldRead] = []
        var cases: [CaseReads] = []
        for index in layout.cases.indices {
            let planned = layout.cases[index]
            let start = reads.count
            for field in planned.fieldStart..<(planned.fieldStart + planned.visibleCount) {
                let operation = layout.fields[Int(field)]
                let id = operation.key >= 0 ? fieldNumbers[Int(operation.key)] : FieldRead.typename
                reads.append(FieldRead(id: id, field: field))
            }
            reads[start...].sort { ($0.id, $0.field) < ($1.id, $1.field) }
            cases.append(CaseReads(start: Int32(start), count: Int32(reads.count - start)))
        }
        fieldIDs = FlatBuffer(fieldNumbers)
        typeIDs = FlatBuffer(typeNumbers)
        self.cases = FlatBuffer(cases)
        self.reads = FlatBuffer(reads)
    }
}

struct CaseReads {
    var start: Int32
    var count: Int32
}

struct FieldRead {
    /// Stands for `__typename`, which is no stored field.
    static let typename = FieldID.max

    var id: FieldID
    /// In the plan's fields.
    var field: Int32
}
