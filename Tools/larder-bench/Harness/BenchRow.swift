/// One line of the benchmark: a figure of ours, the floor of the same run, and what was hoped for.
struct BenchRow: Codable {
    enum Unit: String, Codable {
        case seconds, bytes, allocations
    }

    /// What has to hold for the figure.
    enum Reach: Codable {
        /// At most this many times the floor.
        case ratio(Double)
        /// At most this much more than the floor.
        case excess(Double)
    }

    var name: String
    var what: String
    var unit = Unit.seconds
    var value: Double
    var floorName: String?
    var floor: Double?
    var reach: Reach?
    /// What else belongs to the figure.
    var note: String?

    var ratio: Double? { floor.map { $0 > 0 ? value / $0 : .infinity } }

    /// Nil where nothing was to be reached.
    var isReached: Bool? {
        guard let reach, let floor else { return nil }
        return switch reach {
        case .ratio(let limit): value <= floor * limit
        case .excess(let limit): value <= floor + limit
        }
    }
}
