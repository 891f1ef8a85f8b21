import Foundation

/// Types of Foundation that stand in JSON otherwise than their own `init(from:)` expects.
///
/// Safe: bits are taken for those of another type where the types have been found to be the same.
extension CellDecoder {
    /// Nil for all other types.
    @inline(__always)
    func foundationValue<T>(_ type: T.Type) throws -> T? {
        // The types being the same, so are the bits.
        if type == Date.self { return unsafe unsafeBitCast(try date(), to: type) }
        if type == URL.self { return unsafe unsafeBitCast(try url(), to: type) }
        if type == Data.self { return unsafe unsafeBitCast(try data(), to: type) }
        if type == Decimal.self { return unsafe unsafeBitCast(try decimal(), to: type) }
        return nil
    }

    private func date() throws -> Date {
        switch context.options.dates {
        case .deferredToDate: return try Date(from: self)
        case .secondsSince1970: return Date(timeIntervalSince1970: try decode(Double.self))
        case .custom(let read): return try read(self)
        case .iso8601:
            let text = try decode(String.self)
            let style = Date.ISO8601FormatStyle(includingFractionalSeconds: text.utf8.contains(UInt8(ascii: ".")))
            guard let date = try? style.parse(text) else {
                throw corrupted("\"\(text)\" is no date and time of ISO 8601.")
            }
            return date
        }
    }

    private func url() throws -> URL {
        let text = try decode(String.self)
        guard let url = URL(string: text) else { throw corrupted("\"\(text)\" is no URL.") }
        return url
    }

    private func data() throws -> Data {
        // Lists of bytes are what `Data` itself reads and writes.
        if cell.kind == .list { return try Data(from: self) }
        guard let data = Data(base64Encoded: try decode(String.self)) else { throw corrupted("This is no base64.") }
        return data
    }

    /// From a number, or from text that is one, as many servers write money.
    private func decimal() throws -> Decimal {
        let value = ResponseValue(buffer: context.buffer, cell: cell)
        guard let text = value?.number ?? value?.string else {
            throw context.failure(Decimal.self, isNumber: true, cell, codingPath)
        }
        guard let decimal = Decimal(exactly: text) else {
            throw corrupted("\"\(text)\" is no number that a Decimal keeps.")
        }
        return decimal
    }

    private func corrupted(_ text: String) -> DecodingError {
        .dataCorrupted(.init(codingPath: codingPath, debugDescription: text))
    }
}

extension Decimal {
    /// Nil where the text is no JSON number, or one that is rounded here.
    init?(exactly text: String) {
        let bytes = Array(text.utf8)
        // Safe: the scanner is gone when the closure returns that lends it the bytes.
        let isNumber = unsafe bytes.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            var scanner = unsafe JSONScanner(start, count: buffer.count)
            return (try? scanner.number()) != nil && scanner.position == scanner.end
        }
        guard isNumber, let value = Decimal(string: text), !value.isNaN,
            DecimalDigits(value.description) == DecimalDigits(text)
        else { return nil }
        self = value
    }
}
