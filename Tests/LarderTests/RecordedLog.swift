import Logging
import Synchronization

/// What was logged, from a level on.
final class RecordedLog: LogHandler, Sendable {
    let texts = Mutex<[String]>([])
    private let lowest: Logger.Level
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }

    init(from lowest: Logger.Level) { self.lowest = lowest }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(event: LogEvent) {
        if event.level >= lowest { texts.withLock { $0.append("\(event.message)") } }
    }

    var logger: Logger { Logger(label: "test") { _ in self } }
}
