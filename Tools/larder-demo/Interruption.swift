import Foundation

/// Turns Ctrl-C and its like into the cancellation of a task, so that what it holds is put away.
final class Interruption {
    private let sources: [any DispatchSourceSignal]

    init(_ action: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            let isTaken = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isTaken.signal() }
            source.setEventHandler(handler: action)
            source.resume()
            // Until the system knows of the source, the signal ends the process: nothing is held yet.
            _ = isTaken.wait(timeout: .now() + 10)
            #if canImport(Darwin)
            // There the source only sees the signal, which would end the process still.
            signal(number, SIG_IGN)
            #endif
            return source
        }
    }

    deinit { for source in sources { source.cancel() } }
}
