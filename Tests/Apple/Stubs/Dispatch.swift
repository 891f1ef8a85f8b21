// What LarderRecords uses of Dispatch, whose Swift interface no toolchain for Linux has as text. It is type-checked and
// never run.
public final class DispatchQueue: Sendable {
    public init(label: String, qos: DispatchQoS = .unspecified) {}
    public static func global() -> DispatchQueue { DispatchQueue(label: "") }
    public static func concurrentPerform(iterations: Int, execute work: (Int) -> Void) {}
    public func async(execute work: @escaping @Sendable @convention(block) () -> Void) {}
    public func asyncAfter(deadline: DispatchTime, execute work: @escaping @Sendable @convention(block) () -> Void) {}
}

public struct DispatchQoS: Sendable {
    public static let utility = DispatchQoS()
    public static let unspecified = DispatchQoS()
}

public struct DispatchTime: Sendable {
    public static func now() -> DispatchTime { DispatchTime() }
}

public enum DispatchTimeInterval: Sendable {
    case milliseconds(Int)
    case nanoseconds(Int)
}

public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
public func + (time: DispatchTime, seconds: Double) -> DispatchTime { time }
