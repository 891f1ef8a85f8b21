/// The scalar `DateTime`.
enum DateTime {
    /// Seconds since 1970 as `2024-01-01T00:00:00Z`.
    static func text(_ seconds: Int) -> String {
        let day = Int((Double(seconds) / 86_400).rounded(.down))
        let second = seconds - day * 86_400
        // The Gregorian calendar in eras of 400 years, with the year counted from March.
        let shifted = day + 719_468
        let era = Int((Double(shifted) / 146_097).rounded(.down))
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * ofYear + 2) / 153
        let dayOfMonth = ofYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))"
        return date + "T\(padded(second / 3_600, 2)):\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2))Z"
    }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}
