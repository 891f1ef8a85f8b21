import Dispatch
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the terminal's interrupt key and `kill` ask for, as something to wait for, as often as one likes: the work in
/// hand is ended in order. A second signal ends the process where it stands.
final class Interruption: Sendable {
    private let signals: Signals
    private let stop: @Sendable () -> Void

    /// - Parameter numbers: Which signals it takes.
    init(_ numbers: [Int32] = [SIGINT, SIGTERM]) {
        let signals = Signals()
        let sources = numbers.map { number in
            let source = DispatchSource.makeSignalSource(signal: number)
            let isTaken = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isTaken.signal() }
            source.setEventHandler {
                signals.note()
                // The next one ends the process.
                signal(number, SIG_DFL)
            }
            source.activate()
            // Until the system knows of the source, the signal ends the process. If it were ignored meanwhile, it would
            // be lost.
            _ = isTaken.wait(timeout: .now() + 10)
            #if canImport(Darwin)
            // There the source only sees the signal, which would end the process still.
            signal(number, SIG_IGN)
            #endif
            return Source(source)
        }
        self.signals = signals
        stop = {
            for source in sources { source.cancel() }
            // From here on a signal ends the process again.
            for number in numbers { signal(number, SIG_DFL) }
        }
    }

    deinit { stop() }

    /// Returns at the first signal, at once where there was one, or when the task is cancelled.
    func wait() async { await signals.wait() }

    /// Whether a signal came, or the task was cancelled, within a time.
    func wait(for time: Duration) async -> Bool { await wait(for: { try? await Task.sleep(for: time) }) }

    /// Whether a signal came, or the task was cancelled, before something ended, which is cancelled then.
    func wait(for end: @escaping @Sendable () async -> Void) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await self.wait()
                return true
            }
            group.addTask {
                await end()
                return Task.isCancelled
            }
            defer { group.cancelAll() }
            return await group.next() ?? true
        }
    }

    /// Whether a signal has come, and which tasks wait for it. A stream would not do: it ends for good when a task that
    /// waits is cancelled.
    private final class Signals: Sendable {
        private struct State {
            var hasCome = false
            var count = 0
            var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
        }

        private let state = Mutex(State())

        func note() {
            let waiting = state.withLock { state in
                state.hasCome = true
                defer { state.waiting = [:] }
                return Array(state.waiting.values)
            }
            for continuation in waiting { continuation.resume() }
        }

        func wait() async {
            let number = state.withLock { state in
                state.count += 1
                return state.count
            }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isOver = state.withLock { state in
                        // Where it is cancelled from here on, it is found by its number.
                        if state.hasCome || Task.isCancelled { return true }
                        state.waiting[number] = continuation
                        return false
                    }
                    if isOver { continuation.resume() }
                }
            } onCancel: {
                state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
            }
        }
    }

    /// `@unchecked Sendable`: dispatch objects may be used from any thread.
    private final class Source: @unchecked Sendable {
        private let source: any DispatchSourceSignal
        init(_ source: any DispatchSourceSignal) { self.source = source }
        func cancel() { source.cancel() }
    }
}
