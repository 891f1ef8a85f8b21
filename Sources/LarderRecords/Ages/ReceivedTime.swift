/// When something came from a server: whole seconds since the beginning of 2020, in 31 bits; 0 where it is not known.
///
/// Times are the device's. A clock may have been set back since: a time that lies in the future by more than
/// `tolerance` says nothing, and what has it is as old as can be.
struct ReceivedTime: Equatable {
    static let unknown = ReceivedTime(seconds: 0)
    /// Stands for no maximum age, in seconds.
    static let anyAge = UInt32.max
    /// Clocks of a device are set right by so many seconds now and then.
    static let tolerance: UInt32 = 60
    static let greatest = UInt32(Int32.max)
    /// The beginning of 2020, in seconds since 1970.
    private static let origin: Int64 = 1_577_836_800

    var seconds: UInt32

    init(seconds: UInt32) { self.seconds = seconds }

    /// - Parameters:
    ///   - milliseconds: Since 1970.
    ///   - age: How many seconds before that it came.
    init(milliseconds: Int64, age: Int64 = 0) {
        let (seconds, isFarBack) = (milliseconds / 1000 - Self.origin).subtractingReportingOverflow(age)
        self.seconds = isFarBack ? 1 : UInt32(min(max(seconds, 1), Int64(Self.greatest)))
    }

    /// Seconds since 1970; nil where the time is not known.
    var secondsSince1970: Int64? { seconds == 0 ? nil : Int64(seconds) + Self.origin }

    /// In seconds; nil where the time is not known, or lies in the future.
    @inline(__always)
    func age(at now: ReceivedTime) -> UInt32? {
        guard seconds > 0, seconds <= now.seconds &+ Self.tolerance else { return nil }
        return now.seconds > seconds ? now.seconds - seconds : 0
    }

    /// The seconds by which it is older or younger than others: 0 where its age is not known, which is older than all.
    func standing(at now: ReceivedTime) -> UInt32 { age(at: now) == nil ? 0 : min(seconds, now.seconds) }

    /// A maximum age as it is kept: ages of more than 68 years are as good as any.
    static func maxAge(_ seconds: Int?) -> UInt32 {
        guard let seconds, seconds < Int(greatest) else { return anyAge }
        return UInt32(max(seconds, 0))
    }
}

/// What is said of an answer's age when it is stored.
package struct AnswerAge: Sendable, Hashable {
    /// How long ago the server, or what stands before it, had the answer.
    package var age = Duration.zero
    /// For how long the answer may be used; nil where that is not said.
    package var maxAge: Duration?

    package init(age: Duration = .zero, maxAge: Duration? = nil) {
        (self.age, self.maxAge) = (age, maxAge)
    }
}
