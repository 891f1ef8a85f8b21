import LarderGraphQL

/// Makes values of ours from the source's, by the schema.
struct SourceConverter {
    struct Failure: Error {
        var reason: Omission.Reason
        var detail = ""
    }

    let schema: SchemaIndex
    let keys: FieldKeyReader
    let index: SourceIndex
    let cache: SourceCache
    /// Whether the store knows an object to be no more, by its key.
    let isDeleted: (String) -> Bool
    /// The source's keys of the parts that fields hold which can be taken.
    private(set) var used: Set<ExactText> = []
    /// The same of the field that is being made, in the order in which they are reached.
    private var held: [ExactText] = []
    /// Objects that do not say their type, which the schema gives where they are referred to; by the source's keys.
    private(set) var inferred: [ExactText: SourceIndex.Object] = [:]
    /// What could not be taken of the parts of the last field; the rest of them was.
    private(set) var lost: [Failure] = []
    private var nodes = 0
    /// The parts of the field that were made already: a file may refer to one from many places.
    private var made: [ExactText: (object: TakenObject, nodes: Int)] = [:]

    private static let depthLimit = 40
    /// Of one field, parts included.
    private static let nodeLimit = 1_000_000

    init(
        schema: SchemaIndex, style: KeyStyle, index: SourceIndex, cache: SourceCache,
        isDeleted: @escaping (String) -> Bool
    ) {
        self.schema = schema
        keys = FieldKeyReader(schema: schema, style: style)
        self.index = index
        self.cache = cache
        self.isDeleted = isDeleted
    }

    /// A field of a record.
    ///
    /// - Returns: The field, or why it cannot be taken.
    /// - Throws: What reading the source throws.
    mutating func field(
        _ key: String, _ value: Value, of type: SchemaIndex.TypeID
    ) throws(ImportError) -> Result<TakenField, Failure> {
        nodes = 0
        lost = []
        made = [:]
        held = []
        let field = try field(key, value, of: type, depth: 0)
        used.formUnion(held)
        return field
    }

    private mutating func field(
        _ key: String, _ value: Value, of type: SchemaIndex.TypeID, depth: Int
    ) throws(ImportError) -> Result<TakenField, Failure> {
        let field: SourceField
        do { field = try keys.field(key, of: type) } catch { return .failure(Failure(reason: error.reason)) }
        let mark = held.count
        let value = try self.value(value, field.type, depth: depth)
        if case .failure = value {
            for part in held[mark...] { made[part] = nil }
            held.removeSubrange(mark...)
        }
        return value.map { TakenField(field: field, value: $0) }
    }

    private mutating func value(
        _ value: Value, _ type: ResolvedType, depth: Int
    ) throws(ImportError) -> Result<TakenValue, Failure> {
        nodes += 1
        guard depth < Self.depthLimit, nodes < Self.nodeLimit else { return .failure(Failure(reason: .tooDeep)) }
        if value == .null {
            guard !type.isNonNull else {
                return .failure(Failure(reason: .wrongValue, detail: "null, and the schema allows none"))
            }
            return .success(.null)
        }
        if let element = type.element {
            guard case .list(let elements) = value else {
                return .failure(Failure(reason: .wrongValue, detail: "no list"))
            }
            var taken: [TakenValue] = []
            taken.reserveCapacity(elements.count)
            for inner in elements {
                // What is known to be no more stands in no list.
                if !element.isList, refersToDeleted(inner) { continue }
                switch try self.value(inner, element, depth: depth) {
                case .success(let value): taken.append(value)
                case .failure(let failure): return .failure(failure)
                }
            }
            return .success(.list(taken))
        }
        guard schema.types[type.named].kind.isComposite else {
            return value.reference == nil
                ? .success(.leaf(value)) : .failure(Failure(reason: .wrongValue, detail: "a reference"))
        }
        guard let key = value.reference else {
            return .failure(Failure(reason: .wrongValue, detail: "no reference to an object"))
        }
        let object = try object(key, type, depth: depth)
        // A reference to what is no more reads null, where it may.
        if case .failure(let failure) = object, failure.reason == .deletedHere, !type.isNonNull {
            return .success(.null)
        }
        return object
    }

    private mutating func object(
        _ key: String, _ type: ResolvedType, depth: Int
    ) throws(ImportError) -> Result<TakenValue, Failure> {
        let wanted = schema.types[type.named]
        switch index.identities[ExactText(key)] {
        case .object(let found, let ownKey):
            guard isPossible(found, type.named) else { return .failure(wrongType(found, wanted, key)) }
            guard !isDeleted(ownKey) else { return .failure(Failure(reason: .deletedHere, detail: ownKey)) }
            let values = index.keyValues(of: ownKey)
            return .success(.object(TakenObject(type: found, fields: keyFields(values, as: found))))
        case .part(nil):
            guard wanted.kind == .object else { return .failure(Failure(reason: .noType, detail: key)) }
            guard let object = try inferredObject(key, as: type.named) else {
                return try part(key, type.named, depth: depth)
            }
            guard !isDeleted(object.key) else { return .failure(Failure(reason: .deletedHere, detail: object.key)) }
            let fields = keyFields(object.keyValues, as: object.type)
            return .success(.object(TakenObject(type: object.type, fields: fields)))
        case .part(let found?):
            guard isPossible(found, type.named) else { return .failure(wrongType(found, wanted, key)) }
            return try part(key, found, depth: depth)
        case .queryRoot, .nothing:
            return .failure(Failure(reason: .danglingReference, detail: key))
        case nil:
            guard let absent = index.absent(key), isPossible(absent.type, type.named),
                let definition = schema.field(named: absent.field, of: absent.type)
            else { return .failure(Failure(reason: .danglingReference, detail: key)) }
            guard !isDeleted(key) else { return .failure(Failure(reason: .deletedHere, detail: key)) }
            let isInt = schema.types[definition.type.named].name == "Int"
            let value = isInt ? Int64(absent.value).map(Value.int) ?? .string(absent.value) : .string(absent.value)
            let field = TakenField(field: .plain(absent.field, definition.type), value: .leaf(value))
            return .success(.object(TakenObject(type: absent.type, fields: [ExactText(absent.field): field])))
        }
    }

    /// The object that a record without a type is as one of that type; nil where it lacks what identifies it.
    private mutating func inferredObject(
        _ key: String, as type: SchemaIndex.TypeID
    ) throws(ImportError) -> SourceIndex.Object? {
        if let known = inferred[ExactText(key)], known.type == type { return known }
        guard let record = try cache.record(key), let ownKey = index.key(of: record, as: type) else { return nil }
        let object = SourceIndex.Object(
            key: ownKey, type: type, keyValues: index.keyValues(of: record, as: type), sources: [key])
        inferred[ExactText(key)] = object
        return object
    }

    private mutating func part(
        _ key: String, _ type: SchemaIndex.TypeID, depth: Int
    ) throws(ImportError) -> Result<TakenValue, Failure> {
        if let known = made[ExactText(key)], known.object.type == type {
            // It stands in the answer as often as it is referred to.
            nodes += known.nodes
            guard nodes < Self.nodeLimit else { return .failure(Failure(reason: .tooDeep)) }
            return .success(.object(known.object))
        }
        let before = nodes
        guard let record = try cache.record(key) else {
            return .failure(Failure(reason: .danglingReference, detail: key))
        }
        held.append(ExactText(key))
        var fields: [ExactText: TakenField] = [:]
        for (name, value) in record.fields where name != "__typename" {
            switch try field(name, value, of: type, depth: depth + 1) {
            case .success(let taken): fields[taken.field.selection] = taken
            case .failure(var failure):
                guard failure.reason != .tooDeep else { return .failure(failure) }
                failure.detail = "\(key).\(name)\(failure.detail.isEmpty ? "" : ": ")\(failure.detail)"
                lost.append(failure)
            }
        }
        let object = TakenObject(type: type, fields: fields)
        made[ExactText(key)] = (object, nodes - before)
        return .success(.object(object))
    }

    /// What identifies an object, as fields.
    func keyFields(_ values: [Value], as type: SchemaIndex.TypeID) -> [ExactText: TakenField] {
        var fields: [ExactText: TakenField] = [:]
        for (name, value) in zip(schema.types[type].keyFields ?? [], values) {
            guard let definition = schema.field(named: name, of: type) else { continue }
            fields[ExactText(name)] = TakenField(field: .plain(name, definition.type), value: .leaf(value))
        }
        return fields
    }

    private func refersToDeleted(_ value: Value) -> Bool {
        guard let key = value.reference else { return false }
        if case .object(_, let ownKey)? = index.identities[ExactText(key)] { return isDeleted(ownKey) }
        return index.absent(key) != nil && isDeleted(key)
    }

    private func isPossible(_ type: SchemaIndex.TypeID, _ wanted: SchemaIndex.TypeID) -> Bool {
        type == wanted || schema.isPossible(type, of: wanted)
    }

    private func wrongType(_ type: SchemaIndex.TypeID, _ wanted: SchemaType, _ key: String) -> Failure {
        Failure(reason: .wrongValue, detail: "\(key) is of \(schema.types[type].name), which is no \(wanted.name)")
    }
}

extension SourceField {
    /// A field without arguments.
    static func plain(_ name: String, _ type: ResolvedType) -> SourceField {
        SourceField(selection: ExactText(name), name: name, type: type, hasArguments: false)
    }
}
