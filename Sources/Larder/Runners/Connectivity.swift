/// Whether the network is there, as the system says. Given from outside; nothing is sent while it says no.
public protocol Connectivity: Sendable {
    /// What is known now.
    var isConnected: Bool { get }
    /// Calls whenever that changes, from any thread, until `stop` of the answer is called. Runners without a network wait
    /// for it.
    func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation
}

/// Ends an observation.
public struct ConnectivityObservation: Sendable {
    /// Ends it.
    public let stop: @Sendable () -> Void

    /// - Parameter stop: What ends the observation.
    public init(stop: @escaping @Sendable () -> Void) { self.stop = stop }
}

/// Nothing is known of the network, so it is tried.
package struct AssumedConnectivity: Connectivity {
    /// Always connected.
    package init() {}
    /// True.
    package var isConnected: Bool { true }
    /// Never calls.
    package func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        ConnectivityObservation(stop: {})
    }
}

/// What the system tells of the network: `PathConnectivity` on Apple's systems, `RouteConnectivity` on Linux.
func systemConnectivity() -> any Connectivity {
    #if canImport(Network)
    PathConnectivity()
    #elseif os(Linux)
    RouteConnectivity()
    #else
    AssumedConnectivity()
    #endif
}
