/// The serialized form: 8 bytes of magic, 4 of version, 8 of checksum (both little-endian), then in the primitives of
/// ``ByteWriter``: the table of strings, roots, types, directives. The checksum is over all that follows it.
package enum SerializedSchema {
    static let magic: [UInt8] = Array("LARDERSI".utf8)
    /// Raised with every change of the form. Other versions are refused; the schema is then parsed again.
    static let version: UInt32 = 4
    package static let headerLength = 20

    /// 64-bit FNV-1a over words of eight bytes and then the rest: finds damage, and proves nothing about origin.
    package static func checksum(_ bytes: [UInt8], from start: Int) -> UInt64 {
        var sum: UInt64 = 0xcbf2_9ce4_8422_2325
        var index = start
        while index + 8 <= bytes.count {
            var word: UInt64 = 0
            for offset in 0..<8 { word |= UInt64(bytes[index + offset]) << UInt64(8 * offset) }
            sum = (sum ^ word) &* 0x0000_0100_0000_01b3
            sum ^= sum >> 29
            index += 8
        }
        while index < bytes.count {
            sum = (sum ^ UInt64(bytes[index])) &* 0x0000_0100_0000_01b3
            index += 1
        }
        return sum
    }

    package static func littleEndian<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] {
        (0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> Number($0 * 8)) }
    }
}

extension SchemaIndex {
    /// The schema as bytes, from which ``init(serialized:)`` makes an equal one without parsing.
    package func serialized() -> [UInt8] {
        var body = ByteWriter()
        body.write(types.count)
        body.write(queryType)
        body.write(mutationType)
        body.write(subscriptionType)
        for type in types { body.write(type) }
        body.write(directives.count)
        for directive in directives { body.write(directive) }

        var payload = ByteWriter()
        payload.write(body.strings.count)
        for string in body.strings {
            payload.write(string.utf8.count)
            payload.append(contentsOf: string.utf8)
        }
        payload.append(contentsOf: body.bytes)

        let sum = SerializedSchema.checksum(payload.bytes, from: 0)
        return SerializedSchema.magic + SerializedSchema.littleEndian(SerializedSchema.version)
            + SerializedSchema.littleEndian(sum) + payload.bytes
    }

    /// Reads what ``serialized()`` wrote.
    ///
    /// - Throws: ``SchemaError`` of code `serializedForm` for bytes that are truncated, damaged, of another version or
    ///   something else altogether.
    package init(serialized bytes: some Sequence<UInt8>) throws(SchemaError) {
        let bytes = Array(bytes)
        guard bytes.starts(with: SerializedSchema.magic), bytes.count >= SerializedSchema.headerLength else {
            throw SchemaError(.serializedForm, "The bytes are no serialized schema")
        }
        guard bytes[8..<12].elementsEqual(SerializedSchema.littleEndian(SerializedSchema.version)) else {
            throw SchemaError(.serializedForm, "The serialized schema is of another version")
        }
        let sum = SerializedSchema.checksum(bytes, from: SerializedSchema.headerLength)
        guard bytes[12..<20].elementsEqual(SerializedSchema.littleEndian(sum)) else { throw ByteReader.damaged }
        var reader = ByteReader(bytes, from: SerializedSchema.headerLength)
        self = try reader.readSchema()
    }
}
