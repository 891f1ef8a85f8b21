public import LarderGraphQL
public import LarderRecords

extension Partition {
    /// Answers an operation from the cache alone.
    ///
    /// Any thread may call this, the main thread as well: it waits for no writer and for no network.
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - allowsPartial: Whether an answer that lacks something is returned, `missing` telling what; what may not be
    ///     null makes absent what holds it. Otherwise that is a `.miss`.
    /// - Throws: `.miss` where something is not known and `allowsPartial` is false; `.parked`; `.syntax`, `.operation`
    ///   or `.variables` for what cannot be asked; `records.damaged`.
    /// - Complexity: O(n) in the size of the answer.
    public func read(_ operation: GraphQLOperation, allowsPartial: Bool = false) throws(LarderError) -> Response {
        try answer(try core.operations.bound(query: operation), from: .query, allowsPartial: allowsPartial).response
    }

    /// Answers an operation from the cache alone, in the program's own type.
    ///
    /// - Throws: As `read`; `.data` where the answer does not fit the type.
    public func read<Typed: TypedOperation>(_ operation: Typed) throws(LarderError) -> Typed.Data {
        try decoded(read(operation.operation))
    }

    /// Answers what a fragment asks of one object, from the cache alone.
    ///
    /// - Parameters:
    ///   - key: The object's cache key, such as `Movie:12345`.
    ///   - fragment: What is asked of the object.
    ///   - allowsPartial: Whether an answer that lacks something is returned; otherwise that is a `.miss`.
    /// - Throws: As `read` of an operation; `.deleted` where the object is known to be no more.
    public func read(
        _ key: CacheKey, _ fragment: GraphQLFragment, allowsPartial: Bool = false
    ) throws(LarderError) -> Response {
        try answer(try core.operations.bound(fragment), from: .object(key: key.text), allowsPartial: allowsPartial)
            .response
    }

    /// An operation that is read again and again with the same variables: what must be looked up is looked up once.
    package func prepare(_ operation: GraphQLOperation) throws(LarderError) -> PreparedRead {
        PreparedRead(partition: self, operation: try core.operations.bound(query: operation), root: .query)
    }

    /// What a fragment asks of one object, to be read again and again.
    package func prepare(_ key: CacheKey, _ fragment: GraphQLFragment) throws(LarderError) -> PreparedRead {
        PreparedRead(partition: self, operation: try core.operations.bound(fragment), root: .object(key: key.text))
    }

    func answer(
        _ operation: BoundOperation, from root: RecordCache.Root, allowsPartial: Bool
    ) throws(LarderError) -> CacheAnswer {
        guard let instruments = core.instruments else {
            return try found(operation, from: root, allowsPartial: allowsPartial)
        }
        return try instruments.read(isHit: \CacheAnswer.response.isComplete) { () throws(LarderError) in
            try found(operation, from: root, allowsPartial: allowsPartial)
        }
    }

    private func found(
        _ operation: BoundOperation, from root: RecordCache.Root, allowsPartial: Bool
    ) throws(LarderError) -> CacheAnswer {
        try core.requireCurrent()
        let answer: CacheAnswer
        do { answer = try core.cache.read(operation, from: root) } catch { throw LarderError.parking(error) }
        if answer.isDeleted {
            throw LarderError(.deleted, "The object \(root.description) is known to be no more")
        }
        guard allowsPartial || answer.response.isComplete else { throw LarderError.miss(answer.response) }
        return answer
    }

    func decoded<Data: Decodable>(_ response: Response) throws(LarderError) -> Data {
        do { return try response.decode(Data.self) } catch {
            throw LarderError(.data, "The answer does not fit \(Data.self)", response: response, cause: error)
        }
    }
}

extension RecordCache.Root {
    var description: String {
        switch self {
        case .query: CacheKey.queryRoot.text
        case .object(let key): key
        }
    }
}

/// A read that has been looked up and compiled.
package struct PreparedRead: Sendable {
    let partition: Partition
    let operation: BoundOperation
    let root: RecordCache.Root

    /// As `Partition.read`.
    package func read(allowsPartial: Bool = false) throws(LarderError) -> Response {
        try partition.answer(operation, from: root, allowsPartial: allowsPartial).response
    }
}
