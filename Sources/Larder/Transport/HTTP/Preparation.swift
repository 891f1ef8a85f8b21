/// What a program's closure gives for a request, by a deadline. It is left alone where it takes longer.
///
/// - Throws: Of which nothing has been sent: a `TransportError` as the closure threw it; `.notSignedIn` and the
///   like for what a session throws; otherwise `.notPrepared`.
package func prepared<Value: Sendable>(
    by deadline: SuspendingClock.Instant, _ give: @escaping @Sendable () async throws -> Value
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

extension TransportError {
    /// The same, of an exchange of which nothing has left.
    package var before: TransportError {
        var error = self
        error.phase = .beforeSending
        return error
    }

    /// An error of a closure that supplies headers, or what they are made of.
    fileprivate init(ofPreparation error: any Error) {
        switch error {
        case let error as TransportError:
            self = error
        case is CancellationError where Task.isCancelled:
            self.init(.cancelled, "Supplying the request's headers was cancelled.", cause: error)
        case let error as LarderError:
            self.init(ofSession: error)
        default:
            self.init(.notPrepared, "The request's headers could not be supplied.", cause: error)
        }
    }

    /// What a session says where it has no credentials for a request.
    private init(ofSession error: LarderError) {
        let cause = error.cause as? IdentityError
        switch error.code {
        case .notSignedIn, .waitReleased, .notInUserPool:
            self.init(.notSignedIn, "No user is signed in whom the server would know; sign in.", cause: error)
        case .cancelled:
            self.init(.cancelled, "Waiting for credentials was cancelled.", cause: error)
        case .timedOut:
            self.init(.timedOut, "There were no credentials by the deadline.", cause: error)
        case _ where cause?.code == .userPoolRefused || cause?.code == .federatedRefused:
            self.init(.notSignedIn, "The identity provider has refused the credentials; sign in again.", cause: error)
        default:
            self.init(
                .notPrepared, "There are no credentials for the request.", retryAfter: error.retryAfter, cause: error)
        }
    }
}
