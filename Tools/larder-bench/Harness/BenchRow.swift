/// One line of the benchmark: a figure of ours, the floor of the same run, and what was hoped for.
struct BenchRow {
    enum Unit: String {
        case seconds, bytes, allocations
    }

    /// What has to hold for the figure.
    enum Reach {
        /// At most this many times the floor.
        case ratio(Double)
        /// At most this much more than the floor.
        case excess(Double)
        /// At most this much, whatever the floor.
        case most(Double)
    }

    var name: String
    var what: String
    var unit = Unit.seconds
    var value: Double
    var floorName: String?
    var floor: Double?
    /// The fastest of the rounds, ours and the floor's; nil for a figure that is not timed.
    var fastest: Double?
    var fastestFloor: Double?
    /// All waits of which the value is what 99 of 100 do not exceed; nil where people wait for the whole.
    var waits: Measurement.Waits?
    var reach: Reach?
    /// What else belongs to the figure.
    var note: String?

    /// A row of two contenders, ours first.
    init(
        name: String, what: String, _ times: [Measurement.Times], floorName: String, reach: Reach? = nil,
        note: String? = nil
    ) {
        self.init(
            name: name, what: what, value: times[0].median, floorName: floorName, floor: times[1].median,
            reach: reach, note: note)
        (fastest, fastestFloor) = (times[0].fastest, times[1].fastest)
    }

    /// A row of waits, of which 99 of 100 are to be short.
    init(
        name: String, what: String, _ waits: Measurement.Waits, floorName: String? = nil,
        floor: Measurement.Waits? = nil, reach: Reach? = nil
    ) {
        self.init(
            name: name, what: what, value: waits.ninetyNine, floorName: floorName, floor: floor?.ninetyNine,
            reach: reach)
        self.waits = waits
    }

    init(
        name: String, what: String, unit: Unit = .seconds, value: Double, floorName: String? = nil,
        floor: Double? = nil, reach: Reach? = nil, note: String? = nil
    ) {
        (self.name, self.what, self.unit, self.value) = (name, what, unit, value)
        (self.floorName, self.floor, self.reach, self.note) = (floorName, floor, reach, note)
    }

    var ratio: Double? { floor.map { $0 > 0 ? value / $0 : .infinity } }

    var fastestRatio: Double? {
        guard let fastest, let fastestFloor, fastestFloor > 0 else { return nil }
        return fastest / fastestFloor
    }

    /// Nil where nothing was to be reached.
    var isReached: Bool? {
        switch (reach, floor) {
        case (.ratio(let limit), let floor?): value <= floor * limit
        case (.excess(let limit), let floor?): value <= floor + limit
        case (.most(let limit), _): value <= limit
        default: nil
        }
    }
}
