#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Response {
    /// How a response becomes values of the program's own types.
    public struct DecodingOptions: Sendable {
        /// How a `Date` is read.
        public enum Dates: Sendable {
            /// As `Date` itself does: seconds since the first instant of 2001, UTC.
            case deferredToDate
            /// Text such as `2026-11-21T09:51:46Z`, with or without fractions of a second, with any time zone.
            case iso8601
            case secondsSince1970
            case custom(@Sendable (any Decoder) throws -> Date)
        }

        public var dates: Dates
        /// What the types find in their decoder's `userInfo`.
        public var userInfo: [CodingUserInfoKey: any Sendable]

        public init(dates: Dates = .iso8601, userInfo: [CodingUserInfoKey: any Sendable] = [:]) {
            self.dates = dates
            self.userInfo = userInfo
        }
    }
}
