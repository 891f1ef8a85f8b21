import Larder
import LarderGraphQL

/// Data that fit a schema, made up from names and numbers: an object has the same ones in every answer.
struct MadeUpData {
    private let schema: SchemaIndex
    /// What fields hold in place of a made-up value, by `Type.field`.
    private let values: [String: Value]
    /// What mutations have said of objects, by `Type:key` and field.
    private var said: [String: [String: Value]] = [:]
    private var mutationCount = 0

    fileprivate static let listLength = 3

    init(schema: SchemaIndex, values: [String: Value]) {
        self.schema = schema
        self.values = values
    }

    /// The body of the answer: `data`, or `errors` where the operation does not fit the schema.
    mutating func answer(to request: GraphQLRequest) -> String {
        let operation: Operation
        do { operation = try Operation(request, schema) } catch {
            var message: [UInt8] = []
            appendJSONString(error.message, to: &message)
            return #"{"errors":[{"message":\#(String(decoding: message, as: UTF8.self))}]}"#
        }
        if request.kind == .mutation { mutationCount += 1 }
        var bytes = Array(#"{"data":"#.utf8)
        let root = Object(type: operation.root, number: request.kind == .mutation ? Self.hash("\(mutationCount)") : 0)
        append(root, [operation.selections], of: operation, isSaid: request.kind == .mutation, to: &bytes)
        bytes.append(UInt8(ascii: "}"))
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Objects

    private struct Object {
        var type: SchemaIndex.TypeID
        /// From which its fields are made up.
        var number: UInt64
        /// By which its fields are found in `said`; nil for an object without identity.
        var key: String?
        /// How long its lists are.
        var listLength = MadeUpData.listLength
    }

    private mutating func append(
        _ object: Object, _ selections: [[Selection]], of operation: Operation, isSaid: Bool, to bytes: inout [UInt8]
    ) {
        bytes.append(UInt8(ascii: "{"))
        var isFirst = true
        for (key, fields) in operation.fields(selections, of: object.type, schema) {
            guard let field = fields.first, let definition = schema.field(named: field.name, of: object.type) else {
                continue
            }
            if !isFirst { bytes.append(UInt8(ascii: ",")) }
            isFirst = false
            appendJSONString(key, to: &bytes)
            bytes.append(UInt8(ascii: ":"))
            let arguments = operation.arguments(of: field, definition)
            append(
                Place(object: object, definition: definition, arguments: arguments, fields: fields, isSaid: isSaid),
                definition.type, number: Self.hash("\(object.number) \(field.name) \(arguments.text)"), given: nil,
                of: operation, to: &bytes)
        }
        bytes.append(UInt8(ascii: "}"))
    }

    /// A field of an object, with what was asked of it.
    private struct Place {
        var object: Object
        var definition: FieldDefinition
        var arguments: Arguments
        var fields: [Field]
        var isSaid: Bool
    }

    /// - Parameter given: The key of an object that the arguments name, where the field has a list of them.
    private mutating func append(
        _ place: Place, _ type: ResolvedType, number: UInt64, given: Value?, of operation: Operation,
        to bytes: inout [UInt8]
    ) {
        let named = schema.types[type.named]
        guard !place.definition.name.hasPrefix("__") else {
            appendJSONString(schema.types[place.object.type].name, to: &bytes)
            return
        }
        // What the test gives stands for all that the field holds, be it a list or an object.
        if let value = values[name(of: place)] {
            bytes += value.json
        } else if let element = type.element {
            let keys = place.arguments.keys(for: place.definition)
            let count = keys?.count ?? place.arguments.limit(place.object.listLength)
            bytes.append(UInt8(ascii: "["))
            for index in 0..<count {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                append(
                    place, element, number: Self.hash("\(number) \(index)"), given: keys?[index], of: operation,
                    to: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        } else if named.kind.isComposite {
            let object = object(of: type.named, place, number: number, given: given)
            append(object, place.fields.map(\.selections), of: operation, isSaid: false, to: &bytes)
        } else {
            bytes += leaf(named, place, number: number, isNonNull: type.isNonNull).json
        }
    }

    private mutating func object(
        of type: SchemaIndex.TypeID, _ place: Place, number: UInt64, given: Value?
    ) -> Object {
        let possible = schema.types[type].possibleTypes
        let type = possible.isEmpty ? type : possible[Int(number % UInt64(possible.count))]
        guard let keyFields = schema.types[type].keyFields else {
            // The list of a connection is as long as the field that has the connection says.
            return Object(type: type, number: number, listLength: place.arguments.limit(Self.listLength))
        }
        var told = place.arguments.leaves
        if let given, let field = keyFields.first { told[field] = given }
        // An object whose key the arguments have is the same wherever it is asked for.
        var key = schema.types[type].name
        for field in keyFields {
            key += ":" + (told[field].map(Self.text) ?? Self.identifier(schema.types[type].name, number))
        }
        for field in keyFields where told[field] == nil {
            told[field] = .string(Self.identifier(schema.types[type].name, number))
        }
        said[key, default: [:]].merge(place.isSaid ? told : told.filter { keyFields.contains($0.key) }) { $1 }
        return Object(type: type, number: Self.hash(key), key: key)
    }

    // MARK: Leaves

    private func name(of place: Place) -> String {
        "\(schema.types[place.object.type].name).\(place.definition.name)"
    }

    private func leaf(_ type: SchemaType, _ place: Place, number: UInt64, isNonNull: Bool) -> Value {
        let field = place.definition.name
        if let value = place.object.key.flatMap({ said[$0]?[field] }) { return Self.fitting(value, type) }
        // The list ends here.
        if ["nextToken", "endCursor", "startCursor"].contains(field), !isNonNull { return .null }
        if ["hasNextPage", "hasPreviousPage"].contains(field) { return .boolean(false) }
        if type.kind == .enumeration {
            return .string(type.enumValues[Int(number % UInt64(max(1, type.enumValues.count)))])
        }
        return Self.scalar(type.name, field, number)
    }

    private static func scalar(_ type: String, _ field: String, _ number: UInt64) -> Value {
        let small = Int64(number % 1000)
        switch type {
        case "ID": return .string(identifier(field, number))
        case "Int": return .int(small)
        case "Float": return .float(Double(small) / 10)
        case "Boolean": return .boolean(number % 2 == 0)
        default: break
        }
        let (day, second) = (twoDigits(1 + number % 28), twoDigits(number % 60))
        let month = twoDigits(1 + number / 28 % 12)
        if type.hasSuffix("DateTime") { return .string("2024-\(month)-\(day)T12:00:\(second)Z") }
        if type.hasSuffix("Date") { return .string("2024-\(month)-\(day)") }
        if type.hasSuffix("Timestamp") { return .int(1_700_000_000 + small) }
        if type.hasSuffix("Time") { return .string("12:00:\(second)") }
        if type.hasSuffix("URL") || type.hasSuffix("URI") { return .string("https://example.com/\(field)/\(small)") }
        if type.hasSuffix("Email") { return .string("\(field).\(small)@example.com") }
        if type.hasSuffix("JSON") { return .string("{}") }
        return .string("\(field) \(small)")
    }

    /// A value as a field of a type has it: IDs are strings.
    private static func fitting(_ value: Value, _ type: SchemaType) -> Value {
        switch (type.name, value) {
        case ("ID", _), ("String", .int): .string(text(value))
        case ("Float", .int(let number)): .float(Double(number))
        default: value
        }
    }

    private static func twoDigits(_ number: UInt64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    private static func identifier(_ name: String, _ number: UInt64) -> String {
        "\(name.lowercased())-\(String(number & 0xFFFF_FFFF, radix: 16))"
    }

    static func text(_ value: Value) -> String {
        if case .string(let text) = value { return text }
        return String(decoding: value.json, as: UTF8.self)
    }

    /// FNV-1a, in 64 bits.
    private static func hash(_ text: String) -> UInt64 {
        text.utf8.reduce(14_695_981_039_346_656_037) { ($0 ^ UInt64($1)) &* 1_099_511_628_211 }
    }
}
