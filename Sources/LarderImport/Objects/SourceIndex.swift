import LarderGraphQL

/// Which record is which object.
struct SourceIndex {
    /// What a record is by the schema.
    enum Identity: Hashable {
        /// An object with an identity: its type, and its cache key here.
        case object(SchemaIndex.TypeID, key: String)
        /// An object that has none: it belongs to what refers to it. Nil: what refers to it must say its type.
        case part(SchemaIndex.TypeID?)
        /// The root of all queries.
        case queryRoot
        /// The root of mutations or subscriptions, or of a type that the schema does not have.
        case nothing
    }

    struct Object {
        var key: String
        var type: SchemaIndex.TypeID
        /// The values of its key fields, in their order.
        var keyValues: [Value]
        var sources: [String]
    }

    let schema: SchemaIndex
    /// By the source's keys.
    private(set) var identities: [ExactText: Identity] = [:]
    /// The source's keys of each object, in the order of the rows; by our keys, in the order in which they come first.
    private(set) var objects: [Object] = []
    private var places: [ExactText: Int] = [:]
    /// By type: how many records had the key that we would give them, and how many another.
    private var sameKeys: [SchemaIndex.TypeID: Int] = [:]
    private var otherKeys: Set<SchemaIndex.TypeID> = []

    init(schema: SchemaIndex) { self.schema = schema }

    /// - Returns: Why the record cannot be taken; nil where it can, or may be.
    mutating func note(_ record: SourceRecord) -> Omission.Reason? {
        switch record.key {
        case CacheKey.queryRoot.text:
            identities[ExactText(record.key)] = .queryRoot
            return nil
        case SourceCache.mutationRoot, SourceCache.subscriptionRoot:
            identities[ExactText(record.key)] = .nothing
            return .operationRoot
        default: break
        }
        guard let name = record.typename else {
            // Its key may say the type as ours would: then it is that.
            if let type = type(namedIn: record.key), key(of: record, as: type)?.hasSameBytes(as: record.key) == true {
                note(record, as: type, key: record.key)
            } else {
                identities[ExactText(record.key)] = .part(nil)
            }
            return nil
        }
        guard let type = schema.type(named: name), schema.types[type].kind == .object else {
            identities[ExactText(record.key)] = .nothing
            return .unknownType
        }
        guard let key = key(of: record, as: type) else {
            identities[ExactText(record.key)] = .part(type)
            return nil
        }
        note(record, as: type, key: key)
        return nil
    }

    private mutating func note(_ record: SourceRecord, as type: SchemaIndex.TypeID, key: String) {
        identities[ExactText(record.key)] = .object(type, key: key)
        if record.key.hasSameBytes(as: key) { sameKeys[type, default: 0] += 1 } else { otherKeys.insert(type) }
        if let place = places[ExactText(key)] {
            objects[place].sources.append(record.key)
        } else {
            places[ExactText(key)] = objects.count
            objects.append(
                Object(
                    key: key, type: type, keyValues: keyValues(of: record, as: type), sources: [record.key]))
        }
    }

    /// The values of an object's key fields, in their order, by its key here.
    func keyValues(of key: String) -> [Value] { places[ExactText(key)].map { objects[$0].keyValues } ?? [] }

    func keyValues(of record: SourceRecord, as type: SchemaIndex.TypeID) -> [Value] {
        (schema.types[type].keyFields ?? []).map { record.fields[$0] ?? .null }
    }

    /// The cache key of an object of that type; nil where the type has none, or the record lacks some of it.
    func key(of record: SourceRecord, as type: SchemaIndex.TypeID) -> String? {
        guard let names = schema.types[type].keyFields else { return nil }
        var fields: [(name: String, value: String)] = []
        for name in names {
            guard let text = record.fields[name]?.keyText else { return nil }
            fields.append((name, text))
        }
        return CacheKey.text(type: schema.types[type].name, fields: fields)
    }

    /// What a key that no record has names, where all records of its type show how their keys are made: its type, and
    /// its key field with its value.
    func absent(_ key: String) -> (type: SchemaIndex.TypeID, field: String, value: String)? {
        guard let type = type(namedIn: key), sameKeys[type] != nil, !otherKeys.contains(type),
            let names = schema.types[type].keyFields, names.count == 1, let field = names.first,
            let colon = key.utf8.firstIndex(of: UInt8(ascii: ":"))
        else { return nil }
        let value = String(key[key.utf8.index(after: colon)...])
        return value.isEmpty ? nil : (type, field, value)
    }

    private func type(namedIn key: String) -> SchemaIndex.TypeID? {
        guard let colon = key.utf8.firstIndex(of: UInt8(ascii: ":")),
            let type = schema.type(named: String(key[..<colon])), schema.types[type].kind == .object
        else { return nil }
        return type
    }
}
