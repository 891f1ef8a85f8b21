#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What an `errno` says of a connection.
package enum NetworkFault: Sendable, Hashable {
    /// The server, or the network on the way to it, cannot be reached.
    case unreachable
    /// The other side was silent for too long.
    case silent
    /// This process, or the system, has too many files open.
    case tooManyFiles
    case other

    /// - Parameter status: An `errno`.
    package init(_ status: Int32) {
        switch status {
        case ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EADDRNOTAVAIL: self = .unreachable
        case ETIMEDOUT: self = .silent
        case EMFILE, ENFILE: self = .tooManyFiles
        default: self = .other
        }
    }
}
