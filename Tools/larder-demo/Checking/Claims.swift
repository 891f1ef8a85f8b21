import Larder
import Synchronization

/// Something that the demonstration says and that is not so.
struct Mismatch: Error {
    var claim: String
    var expected: String
    var found: String
}

/// Holds what is said against what is so, and counts.
final class Claims: Sendable {
    private let held = Atomic<Int>(0)

    private let missing = Mutex<String?>(nil)

    var count: Int { held.load(ordering: .relaxed) }

    /// What could not be shown here; nil where all was.
    var leftOut: String? { missing.withLock { $0 } }

    func leaveOut(_ what: String) { missing.withLock { $0 = $0.map { "\($0); \(what)" } ?? what } }

    func expect<Value: Equatable>(_ claim: String, _ found: Value, is expected: Value) throws(Mismatch) {
        guard found == expected else {
            throw Mismatch(claim: claim, expected: "\(expected)", found: "\(found)")
        }
        held.add(1, ordering: .relaxed)
    }

    func expect(_ claim: String, _ holds: Bool, else found: @autoclosure () -> String) throws(Mismatch) {
        guard holds else { throw Mismatch(claim: claim, expected: "that it is so", found: found()) }
        held.add(1, ordering: .relaxed)
    }

    /// The value of something that must be there.
    func require<Value>(_ claim: String, _ value: Value?) throws(Mismatch) -> Value {
        guard let value else { throw Mismatch(claim: claim, expected: "a value", found: "nothing") }
        held.add(1, ordering: .relaxed)
        return value
    }

    /// The error of something that must fail.
    func failure(
        _ claim: String, isolation: isolated (any Actor)? = #isolation,
        _ work: () async throws(LarderError) -> Void
    ) async throws(Mismatch) -> LarderError {
        do throws(LarderError) { try await work() } catch {
            held.add(1, ordering: .relaxed)
            return error
        }
        throw Mismatch(claim: claim, expected: "an error", found: "an answer")
    }
}
