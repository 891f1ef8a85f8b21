/// What the decoders and containers of one decoding share: the memory, the options, and where everything stands.
///
/// Decoders are small: a place, and not the path to it. A path is put together from the places when a caller asks for
/// it, which is when something is wrong.
///
/// Safe: it keeps the buffer, of which texts are copied; bits are taken for those of another type where that has been
/// found to be the same.
final class DecodingContext {
    /// The place of the value that is decoded as a whole.
    static let root: Int32 = -1
    /// The step to something that has no cell, under a key of its own in `absentKeys`.
    private static let absent: Int32 = -2

    private struct Place {
        /// The place of the object or list that holds it.
        var parent: Int32
        /// The slot of the field, or the position in the list.
        var step: Int32
        var cell: ResponseCell
    }

    let buffer: ResponseBuffer
    let options: Response.DecodingOptions
    /// The slot at which the next field is looked for first: programs ask for fields in the order of the operation.
    var guess = 0
    private var places: [Place]
    private var absentKeys: [any CodingKey] = []
    /// For the text of a custom scalar: where in which other decoding it was found.
    private let outer: (context: DecodingContext, place: Int32)?

    init(
        _ buffer: ResponseBuffer, root: ResponseCell, _ options: Response.DecodingOptions,
        outer: (context: DecodingContext, place: Int32)? = nil
    ) {
        self.buffer = buffer
        self.options = options
        self.outer = outer
        places = [Place(parent: Self.root, step: Self.root, cell: root)]
    }

    // MARK: Places

    /// The decoder of a value inside an object or a list.
    func decoder(_ cell: ResponseCell, parent: Int32, step: Int32) throws -> CellDecoder {
        var place: Int32 = 0
        if parent != Self.root {
            place = Int32(truncatingIfNeeded: places.count)
            places.append(Place(parent: parent, step: step, cell: cell))
        }
        guard cell.kind == .json else { return CellDecoder(context: self, place: place) }
        return try decoder(ofText: cell, at: place)
    }

    /// The decoder of what a custom scalar's text holds.
    private func decoder(ofText cell: ResponseCell, at place: Int32) throws -> CellDecoder {
        let inner: ResponseBuffer
        do throws(JSONError) {
            inner = unsafe try ResponseBuffer.parsed(buffer.text(cell), .refuse)
        } catch {
            throw DecodingError.dataCorrupted(
                .init(
                    codingPath: path(to: place), debugDescription: "The JSON of a custom scalar cannot be read.",
                    underlyingError: error))
        }
        let context = DecodingContext(inner, root: inner.cell(at: 0), options, outer: (self, place))
        return CellDecoder(context: context, place: 0)
    }

    /// The decoder of something that is not there.
    func decoder(absent key: any CodingKey, parent: Int32) -> CellDecoder {
        let cell = ResponseCell(.null, payload: UInt64(absentKeys.count))
        absentKeys.append(key)
        places.append(Place(parent: parent, step: Self.absent, cell: cell))
        return CellDecoder(context: self, place: Int32(truncatingIfNeeded: places.count - 1))
    }

    @inline(__always)
    func cell(at place: Int32) -> ResponseCell { places[Int(place)].cell }

    func path(to place: Int32) -> [any CodingKey] {
        var keys: [any CodingKey] = []
        var index = Int(place)
        while index > 0 {
            let place = places[index]
            index = Int(place.parent)
            let holder = places[index].cell
            if place.step == Self.absent {
                keys.append(absentKeys[Int(place.cell.payload)])
            } else if holder.kind == .object {
                keys.append(PathKey(stringValue: buffer.shape(holder).names[Int(place.step)]))
            } else {
                keys.append(PathKey(intValue: Int(place.step)))
            }
        }
        let outside = outer.map { $0.context.path(to: $0.place) } ?? []
        return outside + keys.reversed()
    }

    // MARK: Values

    /// A value of any type. The step is from the parent's place; for the root, both are `root`.
    @inline(__always)
    func value<T: Decodable>(_ type: T.Type, _ cell: ResponseCell, parent: Int32, step: Int32) throws -> T {
        // Elements of lists come here; the types being the same, so are the bits.
        if type == String.self, cell.kind == .string {
            return unsafe unsafeBitCast(String(decoding: buffer.text(cell), as: UTF8.self), to: type)
        }
        let decoder = try decoder(cell, parent: parent, step: step)
        return try decoder.decode(type)
    }

    /// Why a cell is no value of a type.
    func failure(_ type: any Any.Type, isNumber: Bool, _ cell: ResponseCell, _ path: [any CodingKey]) -> DecodingError {
        func context(_ text: String) -> DecodingError.Context { .init(codingPath: path, debugDescription: text) }
        switch cell.kind {
        case .absent, .null: return .valueNotFound(type, context("Expected \(type) but found null."))
        case .int, .float, .number:
            guard isNumber, let value = ResponseValue(buffer: buffer, cell: cell) else { break }
            return .dataCorrupted(context("The number \(value.number ?? "") does not fit into \(type)."))
        default: break
        }
        return .typeMismatch(type, context("Expected \(type) but found \(cell.kind.noun)."))
    }
}

extension CellKind {
    fileprivate var noun: String {
        switch self {
        case .absent, .null: "null"
        case .no, .yes: "a boolean"
        case .int, .float, .number: "a number"
        case .string: "a string"
        case .json: "a custom scalar"
        case .list: "a list"
        case .object: "an object"
        }
    }
}

/// A step of a coding path.
struct PathKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = "Index \(intValue)"
        self.intValue = intValue
    }

    static let `super` = PathKey(stringValue: "super")
}
