package import Foundation

/// `Retry-After` (RFC 9110, section 10.2.3): a number of seconds, or a date.
package enum RetryAfter {
    /// How long to wait; nil where the field is neither. A date that has passed is no wait at all.
    ///
    /// A date is held against the server's own `Date` where it sent one, so that a wrong clock here does not matter.
    package static func duration(_ field: String, serverDate: String?, wallClock: () -> Date) -> Duration? {
        let text = field.filter { $0 != " " && $0 != "\t" }
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // More than a century is as good as never; the bound keeps later arithmetic from overflowing.
            return .seconds(min(Int(text) ?? .max, 100 * 366 * 86_400))
        }
        guard let date = HTTPDate.secondsSince1970(field) else { return nil }
        let now = serverDate.flatMap(HTTPDate.secondsSince1970) ?? Int(wallClock().timeIntervalSince1970.rounded(.down))
        return .seconds(max(0, date - now))
    }
}
