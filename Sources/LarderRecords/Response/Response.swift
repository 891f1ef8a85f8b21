/// An answer to an operation: data, the server's errors, and what the cache does not know.
///
/// The data is one immutable block of memory. Copying a response, comparing it with itself and passing it to
/// another task cost nothing; reading a field decodes that field alone.
///
/// ```swift
/// let title = response["recipe"]?["title"]?.string
/// let recipe = try response.decode(RecipeData.self)
/// ```
///
/// Two responses are equal if their data, errors and missing paths are, wherever they came from.
public struct Response: Sendable {
    let buffer: ResponseBuffer?
    /// The errors that the server reported with this data; none where it was read from a cache.
    public let errors: [GraphQLError]
    /// What the operation asks for and the cache does not know; empty for a complete answer.
    public let missing: [ResponsePath]
    /// How old the oldest part of the data was when it was read: how long ago it came from the server, in whole
    /// seconds. Nil where that is not known, as where the clock was set back since. Not compared, and not encoded.
    public let age: Duration?
    /// Whether a part of the data was older, when it was read, than the schema or the server allows. Not compared, and
    /// not encoded.
    public let isExpired: Bool
    /// When the oldest part came, in seconds since 1970; nil where that is not known, and where the data is not from a
    /// cache.
    package let received: Int64?

    init(
        buffer: ResponseBuffer?, errors: [GraphQLError] = [], missing: [ResponsePath] = [], age: Duration? = nil,
        isExpired: Bool = false, received: Int64? = nil
    ) {
        self.received = received
        self.buffer = buffer
        self.errors = errors
        self.missing = missing
        self.age = age
        self.isExpired = isExpired
    }

    /// The root of the data; nil if there is none.
    public var data: ResponseValue? {
        guard let buffer else { return nil }
        return ResponseValue(buffer: buffer, cell: buffer.cell(at: 0))
    }

    /// A field of the root.
    public subscript(name: String) -> ResponseValue? { data?[name] }

    /// The value at a path; nil where the way ends before. The empty path is the data itself.
    public subscript(path: ResponsePath) -> ResponseValue? { data?[path] }

    /// Whether the cache, or the server, had all that was asked.
    public var isComplete: Bool { missing.isEmpty }

    /// The data as JSON in UTF-8; `null` where there is none.
    public var json: [UInt8] { data?.json ?? Array("null".utf8) }

    /// The same data without the server's errors.
    package var withoutErrors: Response {
        Response(buffer: buffer, missing: missing, age: age, isExpired: isExpired, received: received)
    }

    /// A hash of what `==` compares, by which a response is known again that is not kept: of two that are different it is
    /// the same once in 2⁶⁴ times. Good in this process alone.
    ///
    /// - Complexity: O(n) in the data.
    package var digest: UInt64 {
        let keyed = KeyedHash.ofProcess
        let data = buffer.map { $0.hash($0.cell(at: 0), keyed) } ?? 0
        guard !errors.isEmpty || !missing.isEmpty else { return data }
        var hasher = Hasher()
        hasher.combine(errors)
        hasher.combine(Set(missing))
        return keyed.mix(data, UInt64(truncatingIfNeeded: hasher.finalize()))
    }

    /// The bytes of memory that the data takes.
    package var byteCount: Int { buffer?.count ?? 0 }
}

extension Response: Hashable {
    public static func == (left: Response, right: Response) -> Bool {
        left.data == right.data && left.errors == right.errors
            // The order in which a cache comes upon them is that of its numbers, which says nothing.
            && (left.missing == right.missing || Set(left.missing) == Set(right.missing))
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}

/// A response that stays as long as others keep its data.
package struct WeakResponse: Sendable {
    private weak var buffer: ResponseBuffer?
    /// All but the data.
    private let rest: Response
    private let hasData: Bool

    package init(_ response: Response) {
        buffer = response.buffer
        hasData = response.buffer != nil
        rest = Response(
            buffer: nil, errors: response.errors, missing: response.missing, age: response.age,
            isExpired: response.isExpired, received: response.received)
    }

    package var response: Response? {
        guard hasData else { return rest }
        guard let buffer else { return nil }
        return Response(
            buffer: buffer, errors: rest.errors, missing: rest.missing, age: rest.age, isExpired: rest.isExpired,
            received: rest.received)
    }
}

extension Response: CustomStringConvertible {
    /// The data as JSON.
    public var description: String { String(decoding: json, as: UTF8.self) }
}

extension ResponseValue: CustomStringConvertible {
    /// The value as JSON.
    public var description: String { String(decoding: json, as: UTF8.self) }
}
