package import LarderGraphQL

/// A response as it came from the server, split into records: objects in the order of the text, each with the
/// fields that the plan knows. Nothing in it depends on a cache.
///
/// `ResponseParser` writes the tables and the text, before any other code has them, and `JoinedResponse` copies those
/// of several responses behind each other and moves their indices by as much. No other code makes an index into them.
///
/// Safe: it owns the tables and the text, which never change; what it lends of them lasts as long as it does.
package final class ParsedResponse: Sendable {
    package let layout: PlanLayout
    /// The response's own text. Strings have been unescaped where they stand, so it is JSON no more.
    let text: FlatBuffer<UInt8>
    /// Cache keys, one after the other.
    let keys: FlatBuffer<UInt8>
    let objects: FlatBuffer<ParsedObject>
    /// The identities of those objects that have one.
    let entities: FlatBuffer<ParsedEntity>
    let fields: FlatBuffer<ParsedField>
    /// Elements of lists.
    let items: FlatBuffer<ParsedCell>
    /// Names of types that the schema does not know, numbered after those of the layout.
    let unknownTypes: [String]
    /// The index of the root among the objects; nil where `data` is null or missing.
    let root: Int?
    package let errors: [GraphQLError]
    package let extensions: [String: Value]
    /// Fields, by index, that an error has made null: the cache keeps what it knew of them.
    let unanswered: Set<Int>

    init(
        layout: PlanLayout, text: consuming FlatBuffer<UInt8>, keys: consuming FlatBuffer<UInt8>,
        objects: consuming FlatBuffer<ParsedObject>, entities: consuming FlatBuffer<ParsedEntity>,
        fields: consuming FlatBuffer<ParsedField>, items: consuming FlatBuffer<ParsedCell>,
        unknownTypes: [String], root: Int?, errors: [GraphQLError], extensions: [String: Value], unanswered: Set<Int>
    ) {
        self.layout = layout
        self.text = text
        self.keys = keys
        self.objects = objects
        self.entities = entities
        self.fields = fields
        self.items = items
        self.unknownTypes = unknownTypes
        self.root = root
        self.errors = errors
        self.extensions = extensions
        self.unanswered = unanswered
    }

    package var hasData: Bool { root != nil }
    package var objectCount: Int { objects.count }
    /// Whether the response leaves anything open of which the cache keeps what it knew.
    package var leavesUnanswered: Bool { !unanswered.isEmpty }

    /// The cache key of an object; empty where it has no identity.
    @inline(__always)
    func key(of object: Int) -> UnsafeRawBufferPointer {
        let entity = Int(objects[object].entity)
        guard entity >= 0 else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        return unsafe entities[entity].key(in: UnsafeRawBufferPointer(keys.elements))
    }

    /// Whether an object has no identity.
    @inline(__always)
    func isPart(_ object: Int) -> Bool { objects[object].entity < 0 }

    /// The bytes of a text, valid as long as this lives.
    @inline(__always)
    func text(_ cell: ParsedCell) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(text[cell.offset..<(cell.offset + Int(cell.count))])
    }

    func typeName(_ number: Int32) -> String {
        let known = layout.typeNames.count
        return Int(number) < known ? layout.typeNames[Int(number)] : unknownTypes[Int(number) - known]
    }
}

/// An object of the response.
struct ParsedObject {
    /// In the layout's type names, or past them in `ParsedResponse.unknownTypes`.
    var type: Int32
    var caseIndex: Int32
    var fieldStart: Int32
    var fieldCount: Int32
    /// Its identity in `ParsedResponse.entities`, or -1. Apart, because an answer of many small objects has few.
    var entity: Int32 = -1

    /// Its fields in `ParsedResponse.fields`.
    var fields: Range<Int> { Int(fieldStart)..<Int(fieldStart + fieldCount) }
}

/// The identity of an object of the response.
///
/// Safe: the parser has written its key whole into the keys; `JoinedResponse` moves the place together with the keys.
struct ParsedEntity {
    /// Its cache key in `ParsedResponse.keys`.
    var keyStart: Int32
    var keyCount: Int32
    /// The first object in the text with the same key, which may be this one.
    var first: Int32

    @inline(__always)
    func key(in keys: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: keys[Int(keyStart)..<Int(keyStart + keyCount)])
    }
}

struct ParsedField {
    /// In the plan's fields.
    var field: Int32
    var cell: ParsedCell
}

/// A value of the response. The kinds are those of `ResponseCell`; what differs is where text and parts are:
/// text at an offset in `ParsedResponse.text`, a list's elements from an index in `items`, an object at its index.
typealias ParsedCell = ResponseCell

extension ParsedResponse {
    /// Whether any field of the root has a value other than null: of a mutation, whether anything took effect.
    package var hasAnswers: Bool {
        guard let root else { return false }
        return objects[root].fields.contains { index in
            layout.fields[Int(fields[index].field)].content != .typename
                && fields[index].cell.kind != .null && fields[index].cell.kind != .absent
        }
    }

    /// The response keys of the root's fields, but `__typename`.
    package var rootFields: Set<String> {
        let plan = layout.plan
        let cases = Set(plan.selections[plan.root].types.map(\.caseIndex))
        return Set(
            cases.flatMap { plan.fields[plan.cases[$0].fields] }
                .filter { $0.content != .typename }.map(\.responseKey))
    }
}
