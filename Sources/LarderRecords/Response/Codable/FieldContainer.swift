/// The fields of an object.
struct FieldContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let context: DecodingContext
    private let shape: ObjectShape
    private let place: Int32
    private let block: Int

    init(_ decoder: CellDecoder) throws {
        context = decoder.context
        place = decoder.place
        let cell = decoder.cell
        guard cell.kind == .object else {
            throw context.failure([String: Any].self, isNumber: false, cell, decoder.codingPath)
        }
        shape = context.buffer.shape(cell)
        block = cell.offset
        context.guess = 0
    }

    var codingPath: [any CodingKey] { context.path(to: place) }

    var allKeys: [Key] {
        shape.names.indices.compactMap { slot in
            cell(slot).kind == .absent ? nil : Key(stringValue: shape.names[slot])
        }
    }

    // MARK: Finding fields

    @inline(__always)
    private func cell(_ slot: Int) -> ResponseCell { context.buffer.cell(at: block + slot * ResponseCell.size) }

    /// The field's slot; nil where the object does not have it, or nothing is known of it.
    @inline(__always)
    private func slot(_ key: Key) -> Int? {
        guard let slot = shape.position(of: key.stringValue, guess: context.guess), cell(slot).kind != .absent
        else { return nil }
        context.guess = slot
        return slot
    }

    @inline(__always)
    private func required(_ key: Key) throws -> Int {
        if let slot = slot(key) { return slot }
        throw DecodingError.keyNotFound(
            key,
            .init(codingPath: codingPath, debugDescription: "The response has no field \"\(key.stringValue)\" here."))
    }

    func contains(_ key: Key) -> Bool { slot(key) != nil }

    func decodeNil(forKey key: Key) throws -> Bool { cell(try required(key)).kind == .null }

    // MARK: Scalars

    @inline(__always)
    private func scalar<T: CellScalar>(_ slot: Int, _ key: Key) throws -> T {
        let cell = cell(slot)
        guard let value = T.read(cell, context.buffer) else {
            throw context.failure(T.self, isNumber: T.isNumber, cell, codingPath + [key])
        }
        context.guess = slot + 1
        return value
    }

    @inline(__always)
    private func scalar<T: CellScalar>(_ key: Key) throws -> T { try scalar(try required(key), key) }

    @inline(__always)
    private func scalarIfPresent<T: CellScalar>(_ key: Key) throws -> T? {
        guard let slot = slot(key), cell(slot).kind != .null else { return nil }
        return try scalar(slot, key) as T
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try scalar(key) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try scalar(key) }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try scalar(key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try scalar(key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try scalar(key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try scalar(key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try scalar(key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try scalar(key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try scalar(key) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try scalar(key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try scalar(key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try scalar(key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try scalar(key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try scalar(key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try scalar(key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try scalar(key) }

    // One search instead of three for the commonest; the others have the standard library's own.
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? { try scalarIfPresent(key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? { try scalarIfPresent(key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? { try scalarIfPresent(key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? { try scalarIfPresent(key) }

    // MARK: Parts

    @inline(__always)
    private func part<T: Decodable>(_ slot: Int) throws -> T {
        let value = try context.value(T.self, cell(slot), parent: place, step: Int32(truncatingIfNeeded: slot))
        // The part's own fields were looked for meanwhile.
        context.guess = slot + 1
        return value
    }

    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { try part(try required(key)) }

    func decodeIfPresent<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T? {
        guard let slot = slot(key), cell(slot).kind != .null else { return nil }
        return try part(slot) as T
    }

    private func decoder(_ key: Key) throws -> CellDecoder {
        let slot = try required(key)
        return try context.decoder(cell(slot), parent: place, step: Int32(truncatingIfNeeded: slot))
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        try decoder(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try decoder(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder { try superDecoder(named: PathKey.super) }
    func superDecoder(forKey key: Key) throws -> any Decoder { try superDecoder(named: key) }

    /// What is absent is null to a superclass, which may have no fields.
    private func superDecoder(named key: any CodingKey) throws -> CellDecoder {
        guard let slot = shape.position(of: key.stringValue), cell(slot).kind != .absent else {
            return context.decoder(absent: key, parent: place)
        }
        return try context.decoder(cell(slot), parent: place, step: Int32(truncatingIfNeeded: slot))
    }
}
