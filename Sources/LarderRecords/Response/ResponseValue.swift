/// A value inside a `Response`: a view of its memory, free to copy and to pass between tasks.
public struct ResponseValue: Sendable {
    /// What kinds of value there are.
    public enum Kind: Sendable, Hashable {
        /// As JSON has them; an `int` fits `Int64`, and a `float` is another number that `Double` keeps.
        case null, boolean, int, float
        /// A number that neither `Int64` nor `Double` keeps; `number` is its text.
        case number
        /// A text.
        case string
        /// An object or list of a custom scalar, as the server wrote it; `json` is its text.
        case json
        /// Of what the operation selects.
        case list, object
    }

    // Safe: it keeps the buffer, whose texts it copies; `cell` is one of the buffer's own.
    let buffer: ResponseBuffer
    let cell: ResponseCell

    init?(buffer: ResponseBuffer, cell: ResponseCell) {
        guard cell.kind != .absent else { return nil }
        self.buffer = buffer
        self.cell = cell
    }

    /// - Precondition: The cell is not `.absent`.
    @inline(__always)
    init(buffer: ResponseBuffer, trusted cell: ResponseCell) {
        assert(cell.kind != .absent, "A value is there")
        self.buffer = buffer
        self.cell = cell
    }

    /// What kind of value it is.
    public var kind: Kind {
        switch cell.kind {
        case .absent, .null: .null
        case .no, .yes: .boolean
        case .int: .int
        case .float: .float
        case .number: .number
        case .string: .string
        case .json: .json
        case .list: .list
        case .object: .object
        }
    }

    /// Whether the value is null, which is not the same as absent.
    public var isNull: Bool { cell.kind == .null }

    /// The value of a boolean; nil for any other kind.
    public var boolean: Bool? {
        switch cell.kind {
        case .yes: true
        case .no: false
        default: nil
        }
    }

    /// The value of an int; nil for any other kind, `1.0` included.
    public var int: Int64? { cell.kind == .int ? Int64(bitPattern: cell.payload) : nil }

    /// The value of a float, of an int that a double keeps exactly, and the nearest to a number that no double keeps;
    /// nil for one that is larger than all.
    public var double: Double? {
        switch cell.kind {
        case .number: number.flatMap(Double.init).flatMap { $0.isFinite ? $0 : nil }
        case .float: Double(bitPattern: cell.payload)
        case .int: Double(exactly: Int64(bitPattern: cell.payload))
        default: nil
        }
    }

    /// The text of a string, which is copied; nil for any other kind.
    public var string: String? {
        unsafe cell.kind == .string ? String(decoding: buffer.text(cell), as: UTF8.self) : nil
    }

    /// The text of a number of any kind, as JSON writes it.
    public var number: String? {
        switch cell.kind {
        case .int: String(Int64(bitPattern: cell.payload))
        case .float: Double(bitPattern: cell.payload).description
        case .number: unsafe String(decoding: buffer.text(cell), as: UTF8.self)
        default: nil
        }
    }

    /// The number of elements of a list or fields of an object, otherwise 0.
    public var count: Int {
        switch cell.kind {
        case .list: Int(cell.count)
        case .object: buffer.shape(cell).names.count
        default: 0
        }
    }

    /// The names of an object's fields in the order of the operation, absent fields included.
    public var names: [String] { cell.kind == .object ? buffer.shape(cell).names : [] }

    /// The field's value; nil where the value is no object, has no such field, or the field is absent.
    public subscript(name: String) -> ResponseValue? {
        guard cell.kind == .object, let position = buffer.shape(cell).position(of: name) else { return nil }
        return element(position)
    }

    /// The list's element; nil where the value is no list or is shorter.
    public subscript(index: Int) -> ResponseValue? {
        guard cell.kind == .list, index >= 0, index < Int(cell.count) else { return nil }
        return element(index)
    }

    /// The value at a path that starts here; nil where the way ends before.
    public subscript(path: ResponsePath) -> ResponseValue? {
        var value = self
        for component in path.components {
            let next =
                switch component {
                case .field(let name): value[name]
                case .index(let index): value[index]
                }
            guard let next else { return nil }
            value = next
        }
        return value
    }

    /// The elements of a list; empty for anything else.
    public var elements: [ResponseValue] { (0..<(cell.kind == .list ? Int(cell.count) : 0)).compactMap(element) }

    func element(_ index: Int) -> ResponseValue? {
        ResponseValue(buffer: buffer, cell: buffer.cell(at: cell.offset + index * ResponseCell.size))
    }
}
