/// The elements of a list. It has 24 bytes, so that an `any UnkeyedDecodingContainer` holds it without an allocation.
struct ElementContainer: UnkeyedDecodingContainer {
    private let context: DecodingContext
    private let block: Int
    private let place: Int32
    private var index: Int32 = 0

    init(_ decoder: CellDecoder) throws {
        context = decoder.context
        place = decoder.place
        let cell = decoder.cell
        guard cell.kind == .list else {
            throw context.failure([Any].self, isNumber: false, cell, decoder.codingPath)
        }
        block = cell.offset
    }

    var codingPath: [any CodingKey] { context.path(to: place) }
    var count: Int? { Int(context.cell(at: place).count) }
    var currentIndex: Int { Int(index) }
    var isAtEnd: Bool { UInt32(bitPattern: index) >= context.cell(at: place).count }

    /// The current element, which stays the current one until it was read.
    @inline(__always)
    private func current(_ type: any Any.Type) throws -> ResponseCell {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                type, .init(codingPath: elementPath, debugDescription: "The list has no more elements."))
        }
        return context.buffer.cell(at: block + Int(index) * ResponseCell.size)
    }

    private var elementPath: [any CodingKey] { codingPath + [PathKey(intValue: Int(index))] }

    @inline(__always)
    private mutating func scalar<T: CellScalar>() throws -> T {
        let cell = try current(T.self)
        guard let value = T.read(cell, context.buffer) else {
            throw context.failure(T.self, isNumber: T.isNumber, cell, elementPath)
        }
        index += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        switch try current(Any?.self).kind {
        case .null, .absent:
            index += 1
            return true
        default: return false
        }
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool { try scalar() }
    mutating func decode(_ type: String.Type) throws -> String { try scalar() }
    mutating func decode(_ type: Double.Type) throws -> Double { try scalar() }
    mutating func decode(_ type: Float.Type) throws -> Float { try scalar() }
    mutating func decode(_ type: Int.Type) throws -> Int { try scalar() }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try scalar() }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try scalar() }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try scalar() }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try scalar() }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try scalar() }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try scalar() }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar() }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar() }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar() }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar() }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try scalar() }

    mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
        let value = try context.value(type, try current(type), parent: place, step: index)
        index += 1
        return value
    }

    private mutating func decoder(_ type: any Any.Type) throws -> CellDecoder {
        try context.decoder(try current(type), parent: place, step: index)
    }

    mutating func nestedContainer<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        let container = try decoder(KeyedDecodingContainer<Key>.self).container(keyedBy: type)
        index += 1
        return container
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let container = try decoder((any UnkeyedDecodingContainer).self).unkeyedContainer()
        index += 1
        return container
    }

    mutating func superDecoder() throws -> any Decoder {
        let decoder = try decoder((any Decoder).self)
        index += 1
        return decoder
    }
}
