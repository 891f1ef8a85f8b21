package import Foundation

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// A network between a program and servers of this machine, which can be cut: `Tests/Server/network.py`.
package struct CutNetwork: Sendable {
    /// Where each of the servers is through it, in their order: `http://127.0.0.1:PORT/`.
    package let urls: [URL]
    private let process: ServerProcess

    /// Runs `body` with a network to servers of this machine, which has ended when this returns or throws.
    package static func run<Result>(
        to servers: [URL], _ body: (CutNetwork) async throws -> Result
    ) async throws -> Result {
        let ports = servers.compactMap { $0.port.map(String.init) }
        let process = try await ServerProcess.start("network.py", ports)
        return try await withStarted(process, stop: { await $0.stop() }) { process in
            let urls = process.words.compactMap { URL(string: "http://127.0.0.1:\($0)/") }
            return try await body(CutNetwork(urls: urls, process: process))
        }
    }

    /// Ends all connections, and has new ones refused. Returns when it is so.
    package func cut() async throws { try await signal(SIGUSR1, isReached: false) }

    /// Has connections made again. Returns when it is so.
    package func mend() async throws { try await signal(SIGUSR2, isReached: true) }

    private func signal(_ signal: Int32, isReached expected: Bool) async throws {
        kill(await process.identifier, signal)
        let deadline = SuspendingClock.now + .seconds(60)
        while !urls.allSatisfy({ Self.isReached($0.port ?? 0) == expected }) {
            guard .now < deadline else {
                throw ServerProcess.DidNotStart(description: "The network did not take the signal \(signal)")
            }
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Whether a connection is taken.
    private static func isReached(_ port: Int) -> Bool {
        #if canImport(Darwin)
        let kind = SOCK_STREAM
        #else
        let kind = Int32(SOCK_STREAM.rawValue)
        #endif
        let socket = socket(AF_INET, kind, 0)
        guard socket >= 0 else { return false }
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return withUnsafeBytes(of: &address) { bytes in
            guard let start = bytes.baseAddress else { return false }
            let size = socklen_t(bytes.count)
            return connect(socket, start.assumingMemoryBound(to: sockaddr.self), size) == 0
        }
    }
}
