package import Foundation

/// When a request is signed, as Signature Version 4 writes it: in UTC, to the second.
package struct SigningTime: Sendable, Hashable {
    /// Such as `20130524T000000Z`.
    package let stamp: String
    /// Such as `20130524`.
    package var day: String { String(stamp.prefix(8)) }

    package init(_ date: Date) {
        // Counted by hand because calendars of other eras and zones must not come in. A clock that shows the distant
        // past or future is held to years of four digits.
        let seconds = Int64(min(max(date.timeIntervalSince1970.rounded(.down), 0), 253_402_300_799))
        let (days, second) = seconds.quotientAndRemainder(dividingBy: 86_400)
        // The Gregorian calendar repeats every 146,097 days; years are counted from March, so that the day that only
        // some have is the last.
        let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        func padded(_ number: Int64, _ width: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        stamp =
            padded(year, 4) + padded(month, 2) + padded(day, 2) + "T"
            + padded(second / 3_600, 2) + padded(second / 60 % 60, 2) + padded(second % 60, 2) + "Z"
    }
}
