public import Foundation

extension Response {
    /// How a response becomes values of the program's own types.
    public struct DecodingOptions: Sendable {
        /// How a `Date` is read.
        public enum Dates: Sendable {
            /// As `Date` itself does: seconds since the first instant of 2001, UTC.
            case deferredToDate
            /// Text such as `2026-11-21T09:51:46Z`, with or without fractions of a second, with any time zone.
            case iso8601
            /// A number of seconds since the first instant of 1970, UTC; fractions are kept.
            case secondsSince1970
            /// As the program says; what it throws, decoding throws.
            case custom(@Sendable (any Decoder) throws -> Date)
        }

        /// How a `Date` is read, wherever the types have one.
        public var dates: Dates
        /// What the types find in their decoder's `userInfo`.
        public var userInfo: [CodingUserInfoKey: any Sendable]

        /// Dates as text of ISO 8601, and nothing for the types, unless said otherwise.
        public init(dates: Dates = .iso8601, userInfo: [CodingUserInfoKey: any Sendable] = [:]) {
            self.dates = dates
            self.userInfo = userInfo
        }
    }
}
