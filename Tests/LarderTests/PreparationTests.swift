import Larder
import Testing

@Suite("Requests that could not be prepared")
struct PreparationTests {
    /// What a request ends with whose credentials could not be had.
    private func error(_ code: LarderError.Code, because cause: IdentityError? = nil) async throws -> TransportError {
        let error = await #expect(throws: TransportError.self) {
            _ = try await prepared(by: .now + .seconds(60)) { () async throws -> Int in
                throw LarderError(code, "for a test", cause: cause)
            }
        }
        return try #require(error)
    }

    @Test(
        "A session that has no credentials says whether a sign-in is needed",
        arguments: [
            (LarderError.Code.notSignedIn, TransportError.Code.notSignedIn), (.waitReleased, .notSignedIn),
            (.notInUserPool, .notSignedIn), (.cancelled, .cancelled), (.timedOut, .timedOut), (.parked, .notPrepared),
        ])
    func ofSession(code: LarderError.Code, expected: TransportError.Code) async throws {
        let error = try await error(code)
        #expect(error.code == expected)
        #expect(error.phase == .beforeSending)
    }

    @Test("Five codes say that nothing was sent, and all others that it may have been, unless the transport says it")
    func phases() {
        let before: [TransportError.Code] = [.unreachable, .insecure, .notPrepared, .notSignedIn, .unusableRequest]
        let others: [TransportError.Code] = [.timedOut, .cancelled, .interrupted, .status, .unusableAnswer]
        for code in before + others {
            let expected: TransportError.Phase = before.contains(code) ? .beforeSending : .sending
            #expect(TransportError(code, "for a test").phase == expected, "\(code)")
            for phase in TransportError.Phase.allCases {
                #expect(TransportError(code, "for a test", phase: phase).phase == phase)
            }
        }
    }

    @Test(
        "A refusal by either pool needs a sign-in; another fault can be tried again, when the provider says",
        arguments: [
            (IdentityError.Code.userPoolRefused, TransportError.Code.notSignedIn), (.federatedRefused, .notSignedIn),
            (.unreachable, .notPrepared),
        ])
    func ofProvider(code: IdentityError.Code, expected: TransportError.Code) async throws {
        let cause = IdentityError(code, "for a test", retryAfter: .seconds(7))
        let error = try await error(.init(rawValue: code.rawValue), because: cause)
        #expect(error.code == expected)
        #expect(error.retryAfter == (expected == .notPrepared ? .seconds(7) : nil))
    }
}
