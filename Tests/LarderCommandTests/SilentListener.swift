#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A port of this machine at which connections are taken and nothing is ever answered.
final class SilentListener {
    struct Unavailable: Error {}

    let port: Int
    private let socket: Int32

    init() throws {
        #if canImport(Darwin)
        let kind = SOCK_STREAM
        #else
        let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        #if canImport(Darwin)
        let socket = Darwin.socket(AF_INET, kind, 0)
        #elseif canImport(Glibc)
        let socket = Glibc.socket(AF_INET, kind, 0)
        #else
        let socket = Musl.socket(AF_INET, kind, 0)
        #endif
        self.socket = socket
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, size) == 0 && listen(socket, 16) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        guard isListening else {
            close(socket)
            throw Unavailable()
        }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    /// Whether a connection was made to it.
    var isAsked: Bool {
        var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&waiting, 1, 0) == 1
    }

    deinit { close(socket) }
}
