import Foundation

/// Turns Ctrl-C and its like into the cancellation of a task, so that what it holds is put away.
final class Interruption {
    private let sources: [any DispatchSourceSignal]

    init(_ action: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler(handler: action)
            source.resume()
            return source
        }
    }

    deinit { for source in sources { source.cancel() } }
}
