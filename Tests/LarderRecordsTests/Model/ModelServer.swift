import LarderGraphQL
import LarderTestSupport

/// A server that answers random operations: what it says of one field of one object is the same wherever the response
/// holds it, unless it is told to contradict itself.
struct ModelServer {
    /// What a response says, without the paths on which it says it.
    indirect enum Said {
        case null
        case scalar(Value)
        case list([Said])
        case entity(String)
        case part(type: String, fields: [String: Said])

        /// What two places of one response say of the same field.
        func joined(with other: Said) -> Said {
            switch (self, other) {
            case (.part(let type, let mine), .part(_, let theirs)):
                .part(type: type, fields: mine.merging(theirs) { $0.joined(with: $1) })
            case (.list(let mine), .list(let theirs)): .list(zip(mine, theirs).map { $0.joined(with: $1) })
            default: other
            }
        }
    }

    struct Entity {
        var type: String
        var fields: [String: Said] = [:]
    }

    private let seed: UInt64
    private let isContradictory: Bool
    private let hasErrors: Bool
    private(set) var entities: [String: Entity] = [:]
    private var errorPaths: [String] = []
    private var visits = 0

    init(seed: UInt64, isContradictory: Bool, hasErrors: Bool) {
        self.seed = seed
        self.isContradictory = isContradictory
        self.hasErrors = hasErrors
    }

    mutating func response(to selections: [ModelSelection]) -> String {
        let data = object("Query", identity: "QUERY_ROOT", selections, path: "").json
        let errors =
            errorPaths.isEmpty
            ? ""
            : ",\"errors\":[" + errorPaths.map { "{\"message\":\"no\",\"path\":[\($0)]}" }.joined(separator: ",") + "]"
        return "{\"data\":\(data)\(errors)}"
    }

    private mutating func object(
        _ type: String, identity: String, _ selections: [ModelSelection], path: String
    ) -> (json: String, said: Said) {
        var members: [String] = []
        var fields: [String: Said] = [:]
        let isStored = ModelSchema.isEntity(type) || type == "Query"
        if ModelSchema.isEntity(type) {
            let id = String(identity.split(separator: ":")[1])
            members.append("\"id\":\"\(id)\"")
            fields["id"] = .scalar(.string(id))
        }
        visits += 1
        var order = SeededNumbers(seed: seed, "\(visits)")
        let typename = "\"__typename\":\"\(type)\""
        if Bool.random(using: &order) { members.insert(typename, at: 0) }
        for selection in selections where selection.applies(to: type) {
            let place = path.isEmpty ? "\"\(selection.key)\"" : "\(path),\"\(selection.key)\""
            if selection.field.name == "id", let id = fields["id"], case .scalar(let value) = id {
                members.append("\"\(selection.key)\":\(String(decoding: value.json, as: UTF8.self))")
                continue
            }
            var random = SeededNumbers(
                seed: seed, "\(identity)/\(selection.fieldKey)" + (isContradictory ? "\(visits)" : ""))
            var isErroneous = false
            let said = value(
                selection, level: 0, identity: "\(identity)/\(selection.fieldKey)", path: place, &isErroneous, &random)
            members.append("\"\(selection.key)\":\(said.json)")
            if isErroneous { continue }
            fields[selection.fieldKey] = fields[selection.fieldKey].map { $0.joined(with: said.said) } ?? said.said
        }
        if members.first != typename { members.append(typename) }
        if isStored {
            var entity = entities[identity] ?? Entity(type: type)
            entity.fields.merge(fields) { $0.joined(with: $1) }
            entities[identity] = entity
        }
        let json = "{" + members.joined(separator: ",") + "}"
        return (json, isStored ? .entity(identity) : .part(type: type, fields: fields))
    }

    private mutating func value(
        _ selection: ModelSelection, level: Int, identity: String, path: String, _ isErroneous: inout Bool,
        _ random: inout SeededNumbers
    ) -> (json: String, said: Said) {
        let field = selection.field
        if field.nullable[level], Int.random(in: 0..<5, using: &random) == 0 {
            if hasErrors, Bool.random(using: &random) {
                isErroneous = true
                errorPaths.append(path)
            }
            return ("null", .null)
        }
        if level < field.listDepth {
            var json: [String] = []
            var said: [Said] = []
            for index in 0..<Int.random(in: 0...3, using: &random) {
                let element = value(
                    selection, level: level + 1, identity: "\(identity).\(index)", path: "\(path),\(index)",
                    &isErroneous,
                    &random)
                json.append(element.json)
                said.append(element.said)
            }
            return ("[" + json.joined(separator: ",") + "]", .list(said))
        }
        if let types = ModelSchema.possibleTypes[field.type] {
            let type = types.randomElement(using: &random) ?? "P"
            let entity = "\(type):\(Int.random(in: 1...4, using: &random))"
            return object(
                type, identity: ModelSchema.isEntity(type) ? entity : identity, selection.selections, path: path)
        }
        let number = Int64.random(in: 0...2, using: &random)
        let scalar: Value =
            switch field.type {
            case "Int": .int(number == 2 ? 3_000_000_000 : number)
            case "Float": .float(Double(number) + 0.5)
            default: .string(["", "some text", "\u{E9}\n\"quoted\""][Int(number)])
            }
        return (String(decoding: scalar.json, as: UTF8.self), .scalar(scalar))
    }
}
