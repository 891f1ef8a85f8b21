/// What can be read from one cell without a decoder.
///
/// Safe: the caller keeps the buffer, whose text is copied before `read` returns.
protocol CellScalar {
    static var isNumber: Bool { get }
    /// Nil if the cell holds something else, or a number that this type does not keep.
    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> Self?
}

extension Bool: CellScalar {
    static var isNumber: Bool { false }

    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> Bool? {
        switch cell.kind {
        case .yes: true
        case .no: false
        default: nil
        }
    }
}

extension String: CellScalar {
    static var isNumber: Bool { false }

    @inline(__always)
    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> String? {
        unsafe cell.kind == .string ? String(decoding: buffer.text(cell), as: UTF8.self) : nil
    }
}

extension Double: CellScalar {
    static var isNumber: Bool { true }

    /// As `ResponseValue.double`: the nearest to a number with more digits than a double keeps.
    @inline(__always)
    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> Double? {
        switch cell.kind {
        case .float: Double(bitPattern: cell.payload)
        case .int: Double(exactly: Int64(bitPattern: cell.payload))
        case .number: nearest(to: cell, buffer)
        default: nil
        }
    }

    private static func nearest(to cell: ResponseCell, _ buffer: ResponseBuffer) -> Double? {
        guard let number = unsafe Double(String(decoding: buffer.text(cell), as: UTF8.self)), number.isFinite else {
            return nil
        }
        return number
    }
}

extension Float: CellScalar {
    static var isNumber: Bool { true }

    /// The nearest: hardly any decimal number is exact in a float.
    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> Float? {
        guard let double = Double.read(cell, buffer) else { return nil }
        let nearest = Float(double)
        return nearest.isFinite ? nearest : nil
    }
}

extension CellScalar where Self: FixedWidthInteger {
    static var isNumber: Bool { true }

    @inline(__always)
    static func read(_ cell: ResponseCell, _ buffer: ResponseBuffer) -> Self? {
        switch cell.kind {
        case .int: Self(exactly: Int64(bitPattern: cell.payload))
        case .float: Self(exactly: Double(bitPattern: cell.payload))
        case .number: unsafe Self(String(decoding: buffer.text(cell), as: UTF8.self))
        default: nil
        }
    }
}

extension Int: CellScalar {}
extension Int8: CellScalar {}
extension Int16: CellScalar {}
extension Int32: CellScalar {}
extension Int64: CellScalar {}
extension Int128: CellScalar {}
extension UInt: CellScalar {}
extension UInt8: CellScalar {}
extension UInt16: CellScalar {}
extension UInt32: CellScalar {}
extension UInt64: CellScalar {}
extension UInt128: CellScalar {}
