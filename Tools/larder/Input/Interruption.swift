import Dispatch
#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the terminal's interrupt key and `kill` ask for, as something to wait for: the work in hand is ended in order.
final class Interruption: Sendable {
    private let interrupts: AsyncStream<Void>
    private let stop: @Sendable () -> Void

    init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        interrupts = stream
        let sources = [SIGINT, SIGTERM].map { number in
            // Otherwise the signal still ends the process.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number)
            source.setEventHandler { continuation.yield() }
            source.activate()
            return Source(source)
        }
        stop = { for source in sources { source.cancel() } }
    }

    deinit { stop() }

    /// Returns at the first signal, or when the task is cancelled.
    func wait() async {
        for await _ in interrupts { return }
    }

    /// Whether a signal came, or the task was cancelled, within a time.
    func wait(for time: Duration) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                await self.wait()
                return true
            }
            group.addTask {
                // Cancelled when a signal has come.
                (try? await Task.sleep(for: time)) == nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? true
        }
    }

    /// `@unchecked Sendable`: dispatch objects may be used from any thread.
    private final class Source: @unchecked Sendable {
        private let source: any DispatchSourceSignal
        init(_ source: any DispatchSourceSignal) { self.source = source }
        func cancel() { source.cancel() }
    }
}
