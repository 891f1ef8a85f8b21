import LarderFiles
public import LarderGraphQL
import LarderRecords

extension Partition {
    /// Stores data as if a server had answered the operation with it.
    ///
    /// The data must be complete: every field that is selected, and of every object that has an identity also its key
    /// fields, and `__typename` where the schema allows several types.
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - json: The data as a JSON object in UTF-8.
    /// - Throws: `records.responseMalformed` or `records.responseMismatch` where the data is not of that form;
    ///   `records.busy`, `records.full` or `records.notWritable` where it cannot be stored.
    public func write(_ operation: GraphQLOperation, json: [UInt8]) async throws(LarderError) {
        try await write(core.operations.bound(operation, exposesAdded: true), json, to: .query)
    }

    /// Stores data as if a server had answered the operation with it.
    public func write(_ operation: GraphQLOperation, _ data: Value) async throws(LarderError) {
        try await write(operation, json: data.checkedJSON)
    }

    /// Stores data as if a server had answered the operation with it.
    public func write<Typed: TypedOperation>(
        _ operation: Typed, data: Typed.Data
    ) async throws(LarderError) where Typed.Data: Encodable {
        try await write(operation.operation, json: encoded(data))
    }

    /// Stores the fields of one object.
    ///
    /// - Parameters:
    ///   - key: The object's cache key; the object is made if it is not there.
    ///   - fragment: What is asked of the object.
    ///   - json: What the fragment asks for, as a JSON object in UTF-8. What the key says, the type and the key fields,
    ///     need not be in it.
    public func write(_ key: CacheKey, _ fragment: GraphQLFragment, json: [UInt8]) async throws(LarderError) {
        let data: Value
        do { data = try Value(json: json) } catch {
            throw LarderError(.data, "The data of \(key) is not JSON: \(error)", cause: error)
        }
        try await write(key, fragment, data)
    }

    /// Stores the fields of one object.
    public func write(_ key: CacheKey, _ fragment: GraphQLFragment, _ data: Value) async throws(LarderError) {
        guard case .object(let members) = data else {
            throw LarderError(.data, "The data of \(key) is no object")
        }
        let operation = try core.operations.bound(fragment, exposesAdded: true)
        let complete = core.operations.schema.completed(members, of: key.text, operation)
        try await write(operation, Value.object(complete).checkedJSON, to: .object(key: key.text))
    }

    /// Reads an answer, lets `change` edit it, and stores it, in one transaction.
    ///
    /// An error that `change` throws is thrown on, and nothing is changed. `change` runs on the writer's thread, must
    /// not wait, and may run again where the transaction has to be made again. It may read, and sees what was there
    /// before; another write that it waits for fails with `records.busy` after `Store.Options.lockTimeout`.
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - change: Edits the data; objects in it have their key fields, which must stay with them.
    /// - Throws: `.miss` where the cache does not know all of it; what `change` throws; otherwise as `write`.
    public func update(
        _ operation: GraphQLOperation, _ change: @escaping @Sendable (inout Value) throws -> Void
    ) async throws {
        try await update(core.operations.bound(query: operation, exposesAdded: true), at: .query) { response in
            var value: Value
            do { value = try Value(json: response.json) } catch { throw LarderError(.data, "\(error)", cause: error) }
            try change(&value)
            return try value.checkedJSON
        }
    }

    /// As `update` of an operation, for one object. What its key says, the type and the key fields, stays as it is.
    public func update(
        _ key: CacheKey, _ fragment: GraphQLFragment, _ change: @escaping @Sendable (inout Value) throws -> Void
    ) async throws {
        let schema = core.operations.schema
        let operation = try core.operations.bound(fragment, exposesAdded: true)
        try await update(operation, at: .object(key: key.text)) { response in
            var value: Value
            do { value = try Value(json: response.json) } catch { throw LarderError(.data, "\(error)", cause: error) }
            try change(&value)
            if case .object(let members) = value { value = .object(schema.completed(members, of: key.text, operation)) }
            return try value.checkedJSON
        }
    }

    /// As `update`, in the program's own type, which must hold the key fields of objects that have an identity. A value
    /// that is nil in it is stored as null.
    public func update<Typed: TypedOperation>(
        _ operation: Typed, _ change: @escaping @Sendable (inout Typed.Data) throws -> Void
    ) async throws where Typed.Data: Encodable {
        try await update(core.operations.bound(query: operation.operation, exposesAdded: true), at: .query) {
            response in
            var data: Typed.Data = try self.decoded(response)
            try change(&data)
            return try self.encoded(data)
        }
    }

    /// How an object goes from the cache.
    public enum Removal: String, Sendable, Hashable, CaseIterable {
        /// It is known to be no more: lists go without it, and references to it read null.
        case deleted
        /// Nothing is known of it any more: asking for it is a miss until it comes again.
        case evicted
    }

    /// Removes objects by their cache keys; keys that the cache does not have are passed over.
    ///
    /// - Throws: `records.busy`, `records.full` or `records.notWritable`.
    public func remove(_ keys: CacheKey..., as removal: Removal) async throws(LarderError) {
        try await remove(keys: keys, as: removal)
    }

    /// Removes objects by their cache keys; keys that the cache does not have are passed over.
    public func remove(keys: [CacheKey], as removal: Removal) async throws(LarderError) {
        try await core.requireAwake()
        do {
            _ = try await core.cache.remove(keys: keys.map(\.text), as: .init(removal))
        } catch { throw LarderError.parking(error) }
    }

    /// Removes all objects of a type.
    ///
    /// - Complexity: O(n) in the objects of the type.
    public func remove(type: String, as removal: Removal) async throws(LarderError) {
        try await core.requireAwake()
        do {
            _ = try await core.cache.remove(type: type, as: .init(removal))
        } catch { throw LarderError.parking(error) }
    }

    /// Removes a field of an object.
    ///
    /// - Parameters:
    ///   - field: With arguments, the field that was fetched with these; a name alone, with whatever arguments.
    ///   - key: The object's cache key, or the root of all queries.
    public func remove(field: FieldKey, of key: CacheKey = .queryRoot) async throws(LarderError) {
        try await core.requireAwake()
        do {
            _ = try await core.cache.remove(field: field.text, of: key.text)
        } catch { throw LarderError.parking(error) }
    }

    private func write(
        _ operation: BoundOperation, _ json: [UInt8], to root: RecordCache.Root
    ) async throws(LarderError) {
        try await core.requireAwake()
        do throws(RecordError) {
            let parsed = try ParsedResponse.parse(data: json, along: operation.layout)
            _ = try await core.cache.write(parsed, of: operation, to: root)
        } catch { throw LarderError.parking(error) }
    }

    private func update(
        _ operation: BoundOperation, at root: RecordCache.Root,
        _ change: @escaping @Sendable (Response) throws -> [UInt8]
    ) async throws {
        try await core.requireAwake()
        // What the program throws is not the cache's error, and comes back as it was.
        let thrown = Locked<(any Error)?>(nil)
        let keep: @Sendable (any Error) -> Void = { error in thrown.withLock { $0 = error } }
        do {
            _ = try await core.cache.update(operation, at: root) { answer in
                guard answer.response.isComplete, !answer.isDeleted else {
                    let miss = LarderError.miss(answer.response)
                    keep(miss)
                    throw miss
                }
                let json: [UInt8]
                do { json = try change(answer.response) } catch {
                    keep(error)
                    throw error
                }
                return try ParsedResponse.parse(data: json, along: operation.layout)
            }
        } catch {
            if let own = thrown.withLock({ $0 }) { throw own }
            throw LarderError.parking(error)
        }
    }

    private func encoded(_ data: some Encodable) throws(LarderError) -> [UInt8] {
        let value: Value
        do { value = try ValueEncoder.value(of: data) } catch {
            throw LarderError(.data, "\(type(of: data)) cannot be encoded", cause: error)
        }
        return try value.checkedJSON
    }
}

extension Value {
    /// The value as JSON, unless JSON cannot say it.
    var checkedJSON: [UInt8] {
        get throws(LarderError) {
            if let fault { throw LarderError(.data, "The data cannot be stored: \(fault)") }
            return json
        }
    }
}

extension RecordCache.Removal {
    fileprivate init(_ removal: Partition.Removal) {
        self =
            switch removal {
            case .deleted: .deleted
            case .evicted: .evicted
            }
    }
}
