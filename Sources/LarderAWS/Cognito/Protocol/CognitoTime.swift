#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The time of a proof as Cognito reads it: `Tue Feb 3 04:05:06 UTC 2026`, English and Gregorian whatever the user's
/// settings.
enum CognitoTime {
    private static let days = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func text(_ date: Date) -> String {
        let stamp = Array(SigningTime(date).stamp)
        func part(_ range: Range<Int>) -> String { String(stamp[range]) }
        let sinceEpoch = Int64(min(max(date.timeIntervalSince1970.rounded(.down), 0), 253_402_300_799)) / 86_400
        let month = months[(Int(part(4..<6)) ?? 1) - 1]
        let day = Int(part(6..<8)) ?? 1
        return "\(days[Int(sinceEpoch % 7)]) \(month) \(day) \(part(9..<11)):\(part(11..<13)):\(part(13..<15)) UTC "
            + part(0..<4)
    }
}
