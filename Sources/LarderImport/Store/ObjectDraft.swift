import LarderGraphQL
import LarderRecords

/// The content to store of one object, or of the root of all queries.
struct ObjectDraft: Sendable {
    /// Nil for the root of all queries.
    var key: String?
    var type: SchemaIndex.TypeID
    /// What identifies it.
    var keyFields: [TakenField]
    var fields: [TakenField]

    var root: RecordCache.Root { key.map { .object(key: $0) } ?? .query }

    /// As documents are compiled and answers written whole, neither is let grow without bound.
    static let fieldLimit = 100

    /// Drafts of at most `fieldLimit` fields each; one where there are none.
    var pieces: [ObjectDraft] {
        guard fields.count > Self.fieldLimit else { return [self] }
        return stride(from: 0, to: fields.count, by: Self.fieldLimit).map { start in
            with(Array(fields[start..<min(start + Self.fieldLimit, fields.count)]))
        }
    }

    func with(_ fields: [TakenField]) -> ObjectDraft {
        var draft = self
        draft.fields = fields
        return draft
    }
}

/// A document that selects a draft's fields, and an answer to it.
struct DraftDocument {
    let text: String
    let isFragment: Bool
    /// Of the draft's fields, in their order.
    let responseKeys: [String]
    let answer: [UInt8]
    /// What only some elements of lists know, and is left out.
    let uneven: [String]

    init(_ draft: ObjectDraft, _ schema: SchemaIndex) {
        let type = schema.types[draft.type].name
        var text = draft.key == nil ? "{" : "fragment Taken on \(type) { __typename"
        var answer: [String: Value] = draft.key == nil ? [:] : ["__typename": .string(type)]
        var uneven: [String] = []
        for field in draft.keyFields {
            text += " \(field.field.name)"
            answer[field.field.name] = field.value.leaves
        }
        var keys: [String] = []
        for (index, field) in draft.fields.enumerated() {
            let key = "f\(index)"
            keys.append(key)
            text += " \(key): \(field.field.selection.text)"
            guard schema.types[field.field.type.named].kind.isComposite else {
                answer[key] = field.value.leaves
                continue
            }
            let shape = SelectionShape(field.value.objects, schema)
            text += " \(shape.text)"
            answer[key] = shape.answer(field.value)
            uneven += shape.uneven.map { "\(field.field.selection.text) … \($0)" }
        }
        self.text = text + " }"
        isFragment = draft.key != nil
        responseKeys = keys
        self.answer = Value.object(answer).json
        self.uneven = uneven
    }
}
