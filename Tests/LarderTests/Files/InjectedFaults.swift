import LarderFiles
import Synchronization

/// Makes one call of the file system fail, or all from one on, and counts them.
final class InjectedFaults: Sendable {
    private struct State {
        var calls: [FileCall] = []
        var faulty: Set<Int> = []
    }

    private let state = Mutex(State())
    private let fault: @Sendable (FileCall) -> FileFault?
    private let first: Int
    private let isLasting: Bool

    /// - Parameters:
    ///   - first: The number of the call that fails, from zero; `.max` for none.
    ///   - isLasting: Whether those after it fail as well.
    ///   - fault: What becomes of a call; nil where this fault is none of its kind.
    init(at first: Int, isLasting: Bool = false, _ fault: @escaping @Sendable (FileCall) -> FileFault?) {
        (self.first, self.isLasting, self.fault) = (first, isLasting, fault)
    }

    var files: FileSystem {
        FileSystem(injecting: { call in
            self.state.withLock { state in
                let number = state.calls.count
                state.calls.append(call)
                guard self.isLasting ? number >= self.first : number == self.first, let fault = self.fault(call) else {
                    return nil
                }
                state.faulty.insert(number)
                return fault
            }
        })
    }

    var calls: [FileCall] { state.withLock { $0.calls } }
    var wasInjected: Bool { state.withLock { !$0.faulty.isEmpty } }
}
