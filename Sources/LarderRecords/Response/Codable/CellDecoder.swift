/// The decoder of one value. Of 16 bytes, so that it stands inside an `any Decoder` and not beside it.
struct CellDecoder: Decoder {
    let context: DecodingContext
    let place: Int32

    var cell: ResponseCell { context.cell(at: place) }
    var codingPath: [any CodingKey] { context.path(to: place) }
    var userInfo: [CodingUserInfoKey: Any] { context.options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try FieldContainer<Key>(self))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try ElementContainer(self) }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension CellDecoder: SingleValueDecodingContainer {
    @inline(__always)
    private func scalar<T: CellScalar>() throws -> T {
        let cell = cell
        guard let value = T.read(cell, context.buffer) else {
            throw context.failure(T.self, isNumber: T.isNumber, cell, codingPath)
        }
        return value
    }

    func decodeNil() -> Bool {
        switch cell.kind {
        case .null, .absent: true
        default: false
        }
    }

    func decode(_ type: Bool.Type) throws -> Bool { try scalar() }
    func decode(_ type: String.Type) throws -> String { try scalar() }
    func decode(_ type: Double.Type) throws -> Double { try scalar() }
    func decode(_ type: Float.Type) throws -> Float { try scalar() }
    func decode(_ type: Int.Type) throws -> Int { try scalar() }
    func decode(_ type: Int8.Type) throws -> Int8 { try scalar() }
    func decode(_ type: Int16.Type) throws -> Int16 { try scalar() }
    func decode(_ type: Int32.Type) throws -> Int32 { try scalar() }
    func decode(_ type: Int64.Type) throws -> Int64 { try scalar() }
    func decode(_ type: Int128.Type) throws -> Int128 { try scalar() }
    func decode(_ type: UInt.Type) throws -> UInt { try scalar() }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar() }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar() }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar() }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar() }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar() }

    @inline(__always)
    func decode<T: Decodable>(_ type: T.Type) throws -> T {
        if let special = try foundationValue(type) { return special }
        return try T(from: self)
    }
}
