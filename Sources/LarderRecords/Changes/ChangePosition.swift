/// A place in the log of changes: all changes up to a number, in one epoch.
///
/// An epoch ends when the cache is cleared or rebuilt, or may have lost commits; positions of different epochs tell
/// nothing about each other.
package struct ChangePosition: Sendable, Hashable {
    package var epoch: UInt64
    package var number: UInt64

    package init(epoch: UInt64, number: UInt64) {
        self.epoch = epoch
        self.number = number
    }
}

/// What happened since a position.
package enum ChangesSince: Sendable, Equatable {
    /// These changes, the oldest first, each with its number.
    case changes([(number: UInt64, set: ChangeSet)])
    /// The position is of another epoch, or older than the log.
    case everything

    package static func == (left: ChangesSince, right: ChangesSince) -> Bool {
        switch (left, right) {
        case (.everything, .everything): true
        case (.changes(let left), .changes(let right)):
            left.map(\.number) == right.map(\.number) && left.map(\.set) == right.map(\.set)
        default: false
        }
    }
}
