package import Larder

extension HTTPTransport {
    /// What a program's closure gives for a request, by a deadline. It is left alone where it takes longer.
    ///
    /// - Throws: Of which nothing has been sent: a `TransportError` as the closure threw it; `.notSignedIn` and the
    ///   like for what a session throws; otherwise `.notPrepared`.
    package static func prepared<Value: Sendable>(
        by deadline: ContinuousClock.Instant, _ give: @escaping @Sendable () async throws -> Value
    ) async throws(TransportError) -> Value {
        guard !Task.isCancelled else { throw TransportError.waiterCancelled.before }
        guard deadline > .now else { throw TransportError.deadlinePassed.before }
        do throws(TransportError) {
            return try await JoinedExchange<Value>.run(deadline: deadline) { () async throws(TransportError) -> Value in
                do { return try await give() } catch { throw TransportError(ofPreparation: error) }
            }
        } catch {
            throw error.before
        }
    }
}
