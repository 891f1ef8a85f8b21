import Larder

/// What a server says that cannot run an operation it was told by hash alone.
enum PersistedQueryRefusal {
    case notFound, notSupported

    /// Reads a GraphQL response; nil where it is anything else than such a refusal.
    init?(in body: [UInt8]) {
        // Nearly every answer is data, which can be long: look for the words before reading it as JSON.
        guard body.containsSequence("PersistedQueryNot".utf8) || body.containsSequence("PERSISTED_QUERY_NOT".utf8),
            let envelope = ResponseEnvelope(body), !envelope.hasData
        else { return nil }
        for error in envelope.errors ?? [] {
            switch (error.extensions?.code, error.message) {
            case ("PERSISTED_QUERY_NOT_FOUND", _), (_, "PersistedQueryNotFound"):
                self = .notFound
                return
            case ("PERSISTED_QUERY_NOT_SUPPORTED", _), (_, "PersistedQueryNotSupported"):
                self = .notSupported
                return
            default:
                continue
            }
        }
        return nil
    }
}

extension [UInt8] {
    fileprivate func containsSequence(_ sought: some Collection<UInt8>) -> Bool {
        guard let first = sought.first else { return true }
        var rest = self[...]
        while let start = rest.firstIndex(of: first) {
            if rest[start...].starts(with: sought) { return true }
            rest = rest[(start + 1)...]
        }
        return false
    }
}
