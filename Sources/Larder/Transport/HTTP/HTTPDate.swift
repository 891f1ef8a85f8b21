/// A date as HTTP writes it (RFC 9110, section 5.6.7), in all three forms that a recipient must read.
package enum HTTPDate {
    /// Seconds since 1970-01-01 00:00:00 UTC; nil where the text is not such a date.
    package static func secondsSince1970(_ text: String) -> Int? {
        let words = text.split { $0 == " " || $0 == "," || $0 == "-" }.map(String.init)
        switch words.count {
        case 6:
            // Sun, 06 Nov 1994 08:49:37 GMT, and, with the year in two digits, Sunday, 06-Nov-94 08:49:37 GMT
            guard words[5] == "GMT" else { return nil }
            return seconds(day: words[1], month: words[2], year: words[3], time: words[4])
        case 5:
            // Sun Nov  6 08:49:37 1994
            return seconds(day: words[2], month: words[1], year: words[4], time: words[3])
        default:
            return nil
        }
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    private static func seconds(day: String, month: String, year: String, time: String) -> Int? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
            .map { number(String($0), digits: 2...2) }
        guard let day = number(day, digits: 1...2), (1...31).contains(day),
            let month = months.firstIndex(of: month),
            let year = fullYear(year), clock.count == 3,
            let hour = clock[0], let minute = clock[1], let second = clock[2],
            hour < 24, minute < 60, second <= 60
        else { return nil }
        return days(year: year, month: month + 1, day: day) * 86_400 + hour * 3_600 + minute * 60 + second
    }

    /// Two digits are a year of the century around 2000. The rule of 50 years around today would need a clock, and
    /// the form has not been sent for decades.
    private static func fullYear(_ text: String) -> Int? {
        if let short = number(text, digits: 2...2) { return short < 70 ? 2_000 + short : 1_900 + short }
        return number(text, digits: 4...4)
    }

    private static func number(_ text: String, digits: ClosedRange<Int>) -> Int? {
        guard digits.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(text)
    }

    /// Days since 1970-01-01 in the Gregorian calendar, with the year counted from March.
    private static func days(year: Int, month: Int, day: Int) -> Int {
        let marchYear = month > 2 ? year : year - 1
        let marchMonth = (month + 9) % 12
        let leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400
        return marchYear * 365 + leapDays + (marchMonth * 153 + 2) / 5 + day - 1 - 719_468
    }
}
