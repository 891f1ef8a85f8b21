/// What an import did, or would do.
package struct ImportReport: Sendable, Hashable, Codable {
    /// How many of a kind.
    package struct Tally: Sendable, Hashable, Codable {
        /// They are in the store now and were not before; in a dry run: would be.
        package var taken = 0
        /// The store had them already, and what it had stays.
        package var present = 0

        package init(taken: Int = 0, present: Int = 0) {
            self.taken = taken
            self.present = present
        }
    }

    package var format: ImportFormat
    /// The files that were read.
    package var files: [String] = []
    /// True where nothing was written.
    package var isDryRun: Bool
    /// The rows of the source's cache.
    package var records = 0
    /// The rows that are parts of others, for want of an identity, and were taken with them.
    package var parts = 0
    /// Objects that have an identity.
    package var objects = Tally()
    /// The fields of those objects.
    package var fields = Tally()
    /// The fields of the root of all queries.
    package var rootFields = Tally()
    package var mutations = Tally()
    /// The subscriptions that the source notes, of which nothing is taken: a program subscribes anew.
    package var subscriptions = 0
    /// What was not taken, in the order of items and reasons.
    package var omissions: [Omission] = []

    init(format: ImportFormat, isDryRun: Bool) {
        self.format = format
        self.isDryRun = isDryRun
    }

    /// How many of the items were not taken, for whatever reason.
    package func omitted(_ item: Omission.Item) -> Int {
        omissions.lazy.filter { $0.item == item }.map(\.count).reduce(0, +)
    }

    /// How many were not taken for one reason.
    package func omitted(_ item: Omission.Item, _ reason: Omission.Reason) -> Int {
        omissions.first { $0.item == item && $0.reason == reason }?.count ?? 0
    }

    static let exampleLimit = 5
    static let exampleLength = 200

    /// - Parameter example: Made only where there is room for it.
    mutating func omit(_ item: Omission.Item, _ reason: Omission.Reason, _ example: @autoclosure () -> String) {
        let place = omissions.firstIndex { ($0.item, $0.reason) >= (item, reason) } ?? omissions.count
        if place == omissions.count || omissions[place].item != item || omissions[place].reason != reason {
            omissions.insert(Omission(item: item, reason: reason, count: 0, examples: []), at: place)
        }
        omissions[place].count += 1
        guard omissions[place].examples.count < Self.exampleLimit else { return }
        let text = example()
        let isLong = text.unicodeScalars.count > Self.exampleLength
        omissions[place].examples.append(isLong ? String(text.prefix(Self.exampleLength)) + "…" : text)
    }
}

/// The program whose files are read.
package enum ImportFormat: String, Sendable, Hashable, Codable, CaseIterable {
    /// The SDK of AWS AppSync for iOS: a folder with its databases, or the one database of its older versions.
    case appSync = "appsync"
    /// The SQLite cache of Apollo's client for iOS: a file.
    case apollo
}
