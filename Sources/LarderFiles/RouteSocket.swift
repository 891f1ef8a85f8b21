#if os(Linux)
import CFiles

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// The kernel's messages about links, addresses and routes (`man 7 rtnetlink`): what they say is looked up afterwards.
package final class RouteSocket: Sendable {
    /// Readable when something has changed. It is open until this object goes away.
    package let descriptor: Int32

    /// Nil where the system has no such socket, or does not give one.
    package init?() {
        descriptor = larder_open_route_socket()
        if descriptor < 0 { return nil }
    }

    /// A socket of another kind in its place, for tests, which does not block; it is this object's from now on.
    package init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close(descriptor) }

    /// Reads all that there is, so that the socket is readable again after the next change. The kernel drops messages
    /// that are read too slowly, and says so by an error: that is a change as well.
    package func drain() {
        var bytes = [UInt8](repeating: 0, count: 8192)
        while true {
            let count = recv(descriptor, &bytes, bytes.count, 0)
            if count == 0 || count < 0 && errno != ENOBUFS && errno != EINTR { return }
        }
    }

    /// Whether a link other than the loopback is up and has an address by which others can be reached.
    package static var hasNetwork: Bool { larder_has_network() != 0 }
}
#endif
