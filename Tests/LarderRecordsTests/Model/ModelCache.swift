import LarderGraphQL

/// What a normalized cache must do, as plain dictionaries: the reference that the engine is compared with.
struct ModelCache {
    indirect enum Stored {
        case null
        case scalar(Value)
        case list([Stored])
        case entity(String)
        case part(Object)
    }

    struct Object {
        var type: String
        var fields: [String: Stored] = [:]
    }

    /// Nil stands for a tombstone.
    private(set) var entities: [String: Object?] = [:]

    // MARK: Changing

    mutating func write(_ said: [String: ModelServer.Entity]) {
        for (key, entity) in said {
            var object = (entities[key] ?? nil) ?? Object(type: entity.type)
            for (name, value) in entity.fields { object.fields[name] = stored(value, over: object.fields[name]) }
            entities[key] = object
        }
    }

    /// - Parameter before: What stood there; nil in lists, where nothing of it stays.
    private func stored(_ said: ModelServer.Said, over before: Stored?) -> Stored {
        switch said {
        case .null: return .null
        case .scalar(let value): return .scalar(value)
        case .list(let elements): return .list(elements.map { stored($0, over: nil) })
        case .entity(let key): return .entity(key)
        case .part(let type, let fields):
            var object = Object(type: type)
            if let before, !contradicts(said, before), case .part(let old) = before { object = old }
            for (name, value) in fields { object.fields[name] = stored(value, over: object.fields[name]) }
            return .part(object)
        }
    }

    /// Whether what is said is of another object than the one that stands there: a field that both have differs, or the
    /// type does.
    private func contradicts(_ said: ModelServer.Said, _ stood: Stored) -> Bool {
        switch (said, stood) {
        case (.null, .null): false
        case (.scalar(let new), .scalar(let old)): new != old
        case (.entity(let new), .entity(let old)): new != old
        case (.list(let new), .list(let old)):
            new.count != old.count || zip(new, old).contains { contradicts($0, $1) }
        case (.part(let type, let fields), .part(let old)):
            type != old.type
                || fields.contains { name, value in old.fields[name].map { contradicts(value, $0) } ?? false }
        default: true
        }
    }

    mutating func remove(_ key: String, leavingTombstone: Bool) {
        guard entities[key] != nil else { return }
        let leavingTombstone = leavingTombstone && key != CacheKey.queryRoot.text
        if leavingTombstone { entities[key] = .some(nil) } else { entities[key] = nil }
    }

    mutating func remove(type: String, leavingTombstone: Bool) {
        for key in entities.keys where key.hasPrefix(type + ":") { remove(key, leavingTombstone: leavingTombstone) }
    }

    mutating func remove(field: String, of key: String) {
        guard var object = entities[key] ?? nil else { return }
        object.fields = object.fields.filter { $0.key != field && !$0.key.hasPrefix(field + "(") }
        entities[key] = object
    }

    // MARK: Reading

    struct Answer: Equatable {
        var data: Value
        var missing: [String]
    }

    private enum Outcome {
        case value(Value)
        case null, missing, deleted
    }

    func read(_ selections: [ModelSelection], from key: String) -> Answer {
        var missing: [String] = []
        let outcome = entity(key, selections, path: "", &missing)
        if case .value(let data) = outcome { return Answer(data: data, missing: missing.sorted()) }
        return Answer(data: .null, missing: missing.sorted())
    }

    private func entity(
        _ key: String, _ selections: [ModelSelection], path: String, _ missing: inout [String]
    ) -> Outcome {
        switch entities[key] {
        // The root is there before anything was stored in it.
        case nil where key == CacheKey.queryRoot.text:
            return object(Object(type: "Query"), selections, path: path, &missing)
        case nil:
            missing.append(path)
            return .missing
        case .some(nil): return .deleted
        case .some(.some(let found)): return object(found, selections, path: path, &missing)
        }
    }

    private func object(
        _ object: Object, _ selections: [ModelSelection], path: String, _ missing: inout [String]
    ) -> Outcome {
        var members: [String: Value] = [:]
        var below: [String] = []
        var (isNull, isMissing) = (false, false)
        for selection in selections where selection.applies(to: object.type) {
            let place = path.isEmpty ? selection.key : "\(path).\(selection.key)"
            let outcome: Outcome
            if let stored = object.fields[selection.fieldKey] {
                outcome = value(stored, selection, level: 0, path: place, &below)
            } else {
                below.append(place)
                outcome = .missing
            }
            switch outcome {
            case .value(let value): members[selection.key] = value
            case .null, .deleted:
                members[selection.key] = .null
                if !selection.field.nullable[0] { isNull = true }
            case .missing: if !selection.field.nullable[0] { isMissing = true }
            }
        }
        if isNull { return .null }
        missing += below
        return isMissing ? .missing : .value(.object(members))
    }

    private func value(
        _ stored: Stored, _ selection: ModelSelection, level: Int, path: String, _ missing: inout [String]
    ) -> Outcome {
        switch stored {
        case .null: return .null
        case .scalar(let value): return .value(value)
        case .entity(let key): return entity(key, selection.selections, path: path, &missing)
        case .part(let part): return object(part, selection.selections, path: path, &missing)
        case .list(let elements):
            var values: [Value] = []
            var below: [String] = []
            var (isNull, isMissing) = (false, false)
            for element in elements {
                switch value(element, selection, level: level + 1, path: "\(path)[\(values.count)]", &below) {
                case .deleted: continue
                case .value(let value): values.append(value)
                case .null:
                    values.append(.null)
                    if !selection.field.nullable[level + 1] { isNull = true }
                case .missing:
                    values.append(.null)
                    if !selection.field.nullable[level + 1] { isMissing = true }
                }
            }
            if isNull { return .null }
            missing += below
            return isMissing ? .missing : .value(.list(values))
        }
    }
}
