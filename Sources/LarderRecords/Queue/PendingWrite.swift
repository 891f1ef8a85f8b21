import LarderFiles

/// A write, from the caller's wait to its answer.
struct PendingWrite: Sendable {
    /// The parts, in their order: each is a commit of its own or shares one, and is written whole or not at all. Where
    /// one cannot be made for a reason that is not its content, later ones are not made either.
    let parts: [[WriteStep]]
    /// Whether the commit must survive power loss, whatever the cache's durability.
    let synchronizes: Bool
    /// Until which other processes' writers are waited for.
    let deadline: SuspendingClock.Instant
    /// Answered with the outcome of each part.
    let turn: WriterTurn<[Result<Commit, RecordError>]>

    /// How many pages its responses may change: one for each object, and those that their text fills.
    var pages: Int { parts.reduce(0) { $0 + $1.reduce(0) { $0 + $1.pages } } }
}

/// One wait for the writer's thread, which is answered once: by what was done in its turn, or by its deadline before.
final class WriterTurn<Answer: Sendable>: Sendable {
    typealias Outcome = Result<Answer, RecordError>

    private enum Stage {
        case waiting, begun, ended
    }

    private let stage = Locked(Stage.waiting)
    private let continuation: CheckedContinuation<Outcome, Never>

    init(_ continuation: CheckedContinuation<Outcome, Never>) { self.continuation = continuation }

    /// To be called in the turn, before anything is done; also where it is done again.
    ///
    /// - Throws: `.busy` where the deadline has passed, and was told of.
    func begin() throws(RecordError) {
        let isLate = stage.withLock { stage in
            if stage == .waiting { stage = .begun }
            return stage == .ended
        }
        if isLate { throw Self.late }
    }

    func end(_ outcome: Outcome) {
        let isFirst = stage.withLock { stage in
            defer { stage = .ended }
            return stage != .ended
        }
        if isFirst { continuation.resume(returning: outcome) }
    }

    /// Gives the turn up, at its deadline, if it has not begun.
    func giveUp() {
        let isLate = stage.withLock { stage in
            guard stage == .waiting else { return false }
            stage = .ended
            return true
        }
        if isLate { continuation.resume(returning: .failure(Self.late)) }
    }

    private static var late: RecordError {
        RecordError(
            .busy,
            "The writer of the record cache was busy past the deadline, with other writes, a compaction, or the "
                + "closure of an update, which must not wait for another write; try again, or wait longer")
    }
}
