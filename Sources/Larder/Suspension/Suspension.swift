import Foundation
import LarderFiles

/// Whether a store is suspended, or is about to be, and the work that has to end before: exchanges with a server, and
/// whatever holds a lock of the kernel.
///
/// | phase | files | next, and by what |
/// | --- | --- | --- |
/// | awake | open | draining: `suspend` |
/// | draining | open | closing: no work is left; awake: `resume`, cancelled, out of time |
/// | closing | being closed | suspended: all are closed, or are not to be |
/// | suspended | closed, or some are | opening: `resume`, or the call that could not close all |
/// | opening | being opened | awake: all are open; suspended: one cannot be opened |
/// | ended | `close` closes them | none; comes after each but closing and opening |
///
/// One caller at a time moves files: the one that has begun `closing` or `opening`. Others wait for it, but leave word
/// that a suspension is withdrawn (`isWithdrawn`) or that the store is to be closed (`isEnding`); closing heeds both
/// between two attempts. Work is held from `draining` until the store is awake again, or closed for good.
final class Suspension: Sendable {
    private enum Phase { case awake, draining, closing, suspended, opening, ended }

    private struct State {
        var phase = Phase.awake
        /// How often it was asked for.
        var count = 0
        /// Whether `resume`, or a cancellation, came too late to keep files from being closed.
        var isWithdrawn = false
        /// Whether `close` waits for files to be left alone.
        var isEnding = false
        /// Whether work is to end, and none is to begin.
        var holdsWork = false
        var next = 0
        /// What breaks off each work that is under way.
        var works: [Int: @Sendable () -> Void] = [:]

        var isMoving: Bool { phase == .closing || phase == .opening }
    }

    private let state = Locked(State())
    private let changeSignal = ChangeSignal()
    /// How long a call waits while the store is suspended.
    private let wait: Duration

    init(wait: Duration = .zero) { self.wait = wait }

    /// Whether work is to end, and none is to begin.
    var isAsked: Bool { state.withLock { $0.holdsWork } }
    /// How often that was asked for.
    var count: Int { state.withLock { $0.count } }

    /// Changes the state, and wakes what waits for a change.
    private func change<Outcome: Sendable>(_ body: (inout State) -> Outcome) -> Outcome {
        defer { changeSignal.notify() }
        return state.withLock { body(&$0) }
    }

    // MARK: Work

    /// Takes note of work that a suspension has to wait for; nil where it must not begin.
    ///
    /// - Parameter breakOff: Ends the work where it stands.
    func begin(_ breakOff: @escaping @Sendable () -> Void = {}) -> Int? {
        state.withLock { state in
            guard !state.holdsWork else { return nil }
            state.next += 1
            state.works[state.next] = breakOff
            return state.next
        }
    }

    func end(_ work: Int) { change { _ = $0.works.removeValue(forKey: work) } }

    // MARK: Suspending

    /// Has all work end at its next safe point. Waits first for a call that opens the files after an earlier suspension.
    ///
    /// - Returns: The suspension's number.
    /// - Throws: `.suspended` where that was asked for already; `.parked` after `close`; `.cancelled`, `.timedOut`.
    func ask(until deadline: SuspendingClock.Instant = .now + .seconds(20)) async throws(LarderError) -> Int {
        while true {
            let signals = changeSignal.count
            let number = try state.withLock { (state) throws(LarderError) -> Int? in
                guard state.phase != .ended, !state.isEnding else { throw .parked }
                guard state.phase == .awake else {
                    guard state.phase == .opening || state.isWithdrawn else { throw .suspended }
                    return nil
                }
                (state.phase, state.holdsWork) = (.draining, true)
                state.count += 1
                return state.count
            }
            if let number { return number }
            guard !Task.isCancelled else { throw .unsuspended }
            guard .now < deadline else {
                throw LarderError(.timedOut, "The store was being resumed all the time; allow more time")
            }
            await changeSignal.wait(past: signals, for: deadline - .now)
        }
    }

    /// Waits until all work has ended; breaks off what has not by half of the time.
    ///
    /// - Returns: False where some has not by three quarters of it.
    /// - Throws: `.cancelled` where the task is, or the suspension was withdrawn; `.parked`.
    func workHasEnded(_ number: Int, within time: Duration) async throws(LarderError) -> Bool {
        let start = SuspendingClock.now
        if try await isIdle(number, until: start + time / 2) { return true }
        for breakOff in state.withLock({ Array($0.works.values) }) { breakOff() }
        return try await isIdle(number, until: start + time * 3 / 4)
    }

    private func isIdle(_ number: Int, until deadline: SuspendingClock.Instant) async throws(LarderError) -> Bool {
        while true {
            let signals = changeSignal.count
            guard !Task.isCancelled else { throw .unsuspended }
            let isIdle = try state.withLock { (state) throws(LarderError) in
                try Self.require(.draining, number, state)
                return state.works.isEmpty
            }
            if isIdle { return true }
            guard .now < deadline else { return false }
            await changeSignal.wait(past: signals, for: deadline - .now)
        }
    }

    private static func require(_ phase: Phase, _ number: Int, _ state: State) throws(LarderError) {
        guard state.phase != .ended, !state.isEnding else { throw .parked }
        guard state.phase == phase, state.count == number, !state.isWithdrawn else { throw .unsuspended }
    }

    /// Lets work go on that `ask` holds, where no file is being closed yet.
    ///
    /// - Returns: Whether it does.
    func giveUp(_ number: Int) -> Bool {
        change { state in
            guard state.phase == .draining, state.count == number else { return false }
            (state.phase, state.holdsWork) = (.awake, false)
            return true
        }
    }

    /// Has the caller close the files, and no other caller move one until `endClosing`.
    func beginClosing(_ number: Int) throws(LarderError) {
        try state.withLock { (state) throws(LarderError) in
            try Self.require(.draining, number, state)
            state.phase = .closing
        }
    }

    /// Whether the files are still to be closed.
    func isClosing(_ number: Int) -> Bool {
        state.withLock { $0.phase == .closing && $0.count == number && !$0.isWithdrawn && !$0.isEnding }
    }

    /// Takes a suspension back whose files are being closed.
    func withdraw(_ number: Int) {
        change { state in
            guard state.phase == .closing, state.count == number else { return }
            state.isWithdrawn = true
        }
    }

    /// Gives the files up, all of which are closed.
    ///
    /// - Throws: `.cancelled` where the caller is to open them again; `.parked` where `close` takes them over.
    func endClosing(_ number: Int) throws(LarderError) {
        let failure = change { state -> LarderError? in
            defer { state.phase = .suspended }
            do throws(LarderError) { try Self.require(.closing, number, state) } catch { return error }
            return nil
        }
        if let failure { throw failure }
    }

    /// Gives the files up, some of which are open; the caller opens the others again.
    func endClosingInPart() { change { ($0.phase, $0.isWithdrawn) = (.suspended, true) } }

    /// Whether the store is closed, or is about to be.
    var isEnded: Bool { state.withLock { $0.phase == .ended || $0.isEnding } }

    // MARK: Resuming

    enum Resumption {
        /// The store is awake, or closed.
        case needless
        /// Work goes on from now on; no file was closed.
        case lifted
        /// The caller opens the files, and no other caller moves one until `endOpening`.
        case opening
        /// Another caller moves files: wait until none does.
        case moving
    }

    func beginOpening() -> Resumption {
        change { state in
            guard !state.isEnding else { return .needless }
            switch state.phase {
            case .awake, .ended: return .needless
            case .draining:
                (state.phase, state.holdsWork) = (.awake, false)
                return .lifted
            case .closing:
                state.isWithdrawn = true
                return .moving
            case .opening: return .moving
            case .suspended:
                (state.phase, state.isWithdrawn) = (.opening, false)
                return .opening
            }
        }
    }

    /// - Parameter isWhole: Whether all files are open.
    func endOpening(isWhole: Bool) {
        change { state in
            // `close` holds the work until it has closed them.
            let isAwake = isWhole && !state.isEnding
            (state.phase, state.holdsWork) = (isAwake ? .awake : .suspended, !isAwake)
        }
    }

    /// Blocks this thread until no caller moves files. Callers move them on threads of their own, so that a blocked thread
    /// of Swift's few keeps none of them waiting.
    ///
    /// - Returns: False where one does past the deadline.
    func filesRest(until deadline: SuspendingClock.Instant) -> Bool {
        let rest: Void? = poll(until: deadline) { state.withLock { $0.isMoving ? nil : () } }
        return rest != nil
    }

    // MARK: Closing the store

    /// The caller takes the files from whoever moves them, and nobody suspends the store from then on. Runners and calls
    /// that the suspension holds are held until `lift`, so that they never find a store that is half closed.
    ///
    /// It waits for a caller that moves files: closing is given up at once, opening ends by its own deadlines.
    func close() {
        state.withLock { $0.isEnding = true }
        while true {
            let isClosed = change { state in
                guard !state.isMoving else { return false }
                state.phase = .ended
                return true
            }
            if isClosed { return }
            _ = filesRest(until: .now + .seconds(1))
        }
    }

    /// Lets work find out that the store was closed.
    func lift() { change { $0.holdsWork = false } }

    // MARK: Waiting

    /// Waits until the store is not suspended any more, or the task is cancelled.
    ///
    /// - Returns: For how long it was: deadlines are to be moved by as much.
    func sitOut() async -> Duration {
        let start = SuspendingClock.now
        while !Task.isCancelled {
            let count = changeSignal.count
            guard isAsked else { break }
            await changeSignal.wait(past: count, for: nil)
        }
        return .now - start
    }

    /// Waits as long as a call may, without keeping its thread.
    ///
    /// - Throws: `.suspended`.
    func requireAwake() async throws(LarderError) {
        let deadline = SuspendingClock.now + wait
        while true {
            let count = changeSignal.count
            guard isAsked else { return }
            guard .now < deadline, !Task.isCancelled else { throw .suspended }
            await changeSignal.wait(past: count, for: deadline - .now)
        }
    }
}

extension LarderError {
    static var suspended: LarderError {
        LarderError(.suspended, "The store is suspended, or about to be; resume it, and try again")
    }

    static var unsuspended: LarderError {
        LarderError(
            .cancelled, "The store was resumed, or the task was cancelled, before the store was suspended; it is open")
    }
}
