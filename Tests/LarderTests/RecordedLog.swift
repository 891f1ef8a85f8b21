import Logging
import Synchronization

/// What was logged, from a level on.
final class RecordedLog: LogHandler, Sendable {
    let texts = Mutex<[String]>([])
    /// The metadata values of each event, as one text.
    let details = Mutex<[String]>([])
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
        guard event.level >= lowest else { return }
        texts.withLock { $0.append("\(event.message)") }
        let values = (event.metadata ?? [:]).values.map { "\($0)" }
        details.withLock { $0.append(values.sorted().joined(separator: "; ")) }
    }

    var logger: Logger { Logger(label: "test") { _ in self } }
}
