import LarderGraphQL
import LarderRecords

/// Splits a response into records as Apollo's client does: an object is under its cache key, which `key` makes, or
/// under the path to it; a field is under its name and the arguments that the document gives.
struct ApolloNormalizer {
    let document: Document
    let schema: SchemaIndex
    /// Nil for objects that have none.
    let key: ([String: Value]) -> String?
    private(set) var records: [(key: String, fields: [String: Value])] = []
    private var places: [String: Int] = [:]

    init(_ document: String, _ schema: SchemaIndex, key: @escaping ([String: Value]) -> String?) throws {
        self.document = try Document(parsing: document)
        self.schema = schema
        self.key = key
    }

    mutating func add(_ data: [String: Value]) {
        guard let operation = document.operations.first else { return }
        normalize(data, operation.selections, at: "QUERY_ROOT")
    }

    private mutating func normalize(_ object: [String: Value], _ selections: [Selection], at path: String) {
        var fields: [String: Value] = [:]
        if let name = object["__typename"] { fields["__typename"] = name }
        let selected = collect(selections, of: object)
        for (responseKey, group) in Dictionary(grouping: selected, by: \.responseKey) {
            guard let field = group.first, let value = object[responseKey] else { continue }
            let name = Self.key(of: field)
            fields[name] = self.value(value, group.flatMap(\.selections), at: "\(path).\(name)")
        }
        if let place = places[path] {
            records[place].fields.merge(fields) { _, new in new }
        } else {
            places[path] = records.count
            records.append((path, fields))
        }
    }

    private mutating func value(_ value: Value, _ selections: [Selection], at path: String) -> Value {
        switch value {
        case .object(let object) where !selections.isEmpty:
            let place = key(object) ?? path
            normalize(object, selections, at: place)
            return ["$reference": .string(place)]
        case .list(let elements):
            return .list(elements.enumerated().map { self.value($1, selections, at: "\(path).\($0)") })
        default: return value
        }
    }

    private func collect(_ selections: [Selection], of object: [String: Value]) -> [Field] {
        selections.flatMap { selection -> [Field] in
            switch selection {
            case .field(let field): return [field]
            case .inlineFragment(let fragment):
                return fits(object, fragment.typeCondition) ? collect(fragment.selections, of: object) : []
            case .fragmentSpread(let spread):
                guard let fragment = document.fragments.first(where: { $0.name == spread.name }),
                    fits(object, fragment.typeCondition)
                else { return [] }
                return collect(fragment.selections, of: object)
            }
        }
    }

    private func fits(_ object: [String: Value], _ condition: String?) -> Bool {
        guard let condition, case .string(let name)? = object["__typename"], let type = schema.type(named: name),
            let wanted = schema.type(named: condition)
        else { return condition == nil }
        return type == wanted || schema.isPossible(type, of: wanted)
    }

    private static func key(of field: Field) -> String {
        guard !field.arguments.isEmpty else { return field.name }
        let arguments = field.arguments.sorted { $0.name < $1.name }.map { argument in
            switch argument.value {
            case .int(let text), .float(let text), .string(let text), .enumeration(let text): "\(argument.name):\(text)"
            default: "\(argument.name):?"
            }
        }
        return "\(field.name)(\(arguments.joined(separator: ",")))"
    }
}
