/// What a check of a record cache found.
package struct CheckReport: Sendable {
    /// How much is looked at.
    package enum Level: Sendable, Hashable {
        /// Every value against its checksum. Finds what damage does to a file, at the cost of reading it once.
        case checksums
        /// Also every page, and whether records, references, keys and names agree with each other.
        case everything
    }

    /// The first problems, in the order in which they were found; at most `limit`.
    package internal(set) var problems: [Problem] = []
    /// How many there are.
    package internal(set) var problemCount = 0
    /// How many entries were looked at.
    package internal(set) var counts = Counts()

    package var isSound: Bool { problemCount == 0 }

    static let limit = 1000

    package struct Counts: Sendable, Hashable {
        package internal(set) var pages: UInt64 = 0
        package internal(set) var entities = 0
        package internal(set) var parts = 0
        package internal(set) var tombstones = 0
        package internal(set) var splitFields = 0
        package internal(set) var references = 0
        package internal(set) var keys = 0
        package internal(set) var names = 0
        package internal(set) var changes = 0
        package internal(set) var applied = 0
    }

    /// Something that is not as it must be.
    package struct Problem: Sendable, Hashable, CustomStringConvertible {
        package enum Place: Sendable, Hashable {
            /// The data file, and its page where one is known.
            case page(UInt64?)
            case state
            case name(String)
            case number(UInt64)
            case key(String)
            case record(UInt64)
            case field(record: UInt64, field: UInt32)
            case change(UInt64)
            /// The note of a mutation, by its idempotency key as it is stored.
            case applied(String)
            /// The position of a synchronization, or its marks, by the key as it is stored.
            case position(String)
        }

        package let place: Place
        package let what: String

        package var description: String {
            switch place {
            case .page(let page): "page \(page.map(String.init) ?? "?"): \(what)"
            case .state: "counters: \(what)"
            case .name(let name): "name \(name): \(what)"
            case .number(let number): "number \(number): \(what)"
            case .key(let key): "key \(key): \(what)"
            case .record(let id): "record \(id): \(what)"
            case .field(let record, let field): "record \(record), field \(field): \(what)"
            case .change(let number): "change \(number): \(what)"
            case .applied(let key): "applied \(key): \(what)"
            case .position(let key): "position \(key): \(what)"
            }
        }
    }

    mutating func add(_ place: Problem.Place, _ what: String) {
        problemCount += 1
        if problems.count < Self.limit { problems.append(Problem(place: place, what: what)) }
    }

    /// Takes in the problems of another part of the same cache. The counts are this one's alone.
    mutating func join(_ other: CheckReport) {
        problemCount += other.problemCount
        problems += other.problems.prefix(max(0, Self.limit - problems.count))
    }
}
