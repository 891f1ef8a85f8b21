import Foundation
import LarderFiles
import LarderOperations

/// What a store wants done: `larder.sqlite`, opened when it is needed first.
///
/// A store that only reads and fetches has no such file.
final class OperationsStore: Sendable {
    private enum State {
        case unopened
        case open(OperationsDatabase)
        case closed
    }

    let folder: URL
    private let options: OperationsDatabase.Options
    private let state = Locked(State.unopened)
    /// Notifies whenever this process has changed something.
    let changeSignal = ChangeSignal()
    /// Notifies after each commit to the queue, and after each commit of another process as far as the system tells of it.
    let commitSignal = ChangeSignal()
    /// For waits that a notification alone is to end: as `Store.Options` says.
    let longestWait: Duration
    let suspension: Suspension

    init(folder: URL, options: OperationsDatabase.Options, longestWait: Duration) {
        self.folder = folder
        self.longestWait = longestWait
        var options = options
        options.committed = { [commitSignal] in commitSignal.notify() }
        self.options = options
        suspension = Suspension(wait: options.suspensionWait)
    }

    /// The database; nil where there is none and none is to be made.
    func database(making: Bool) throws(LarderError) -> OperationsDatabase? {
        let result = state.withLock { state -> Result<OperationsDatabase?, LarderError> in
            switch state {
            case .open(let database): return .success(database)
            case .closed: return .failure(.parked)
            case .unopened where suspension.isAsked: return .failure(.suspended)
            case .unopened:
                do throws(OperationsError) {
                    if !making, try !OperationsDatabase.exists(in: folder, options.files) { return .success(nil) }
                    let database = try OperationsDatabase(folder: folder, options: options)
                    state = .open(database)
                    return .success(database)
                } catch { return .failure(LarderError(error)) }
            }
        }
        return try result.get()
    }

    /// The database, which is made if there is none.
    func database() throws(LarderError) -> OperationsDatabase {
        guard let database = try database(making: true) else { throw .parked }
        return database
    }

    /// Gives the file back until `resume`.
    func suspend(until deadline: SuspendingClock.Instant, while isWanted: () -> Bool) throws(LarderError) {
        guard case .open(let database) = state.withLock({ $0 }) else { return }
        do throws(OperationsError) { try database.suspend(until: deadline, while: isWanted) } catch {
            throw LarderError(error)
        }
    }

    func resume() throws(LarderError) {
        guard case .open(let database) = state.withLock({ $0 }) else { return }
        do throws(OperationsError) { try database.resume() } catch { throw LarderError(error) }
    }

    func close() throws(LarderError) {
        let open = state.withLock { state in
            defer { state = .closed }
            if case .open(let database) = state { return database as OperationsDatabase? }
            return nil
        }
        changeSignal.notify()
        do throws(OperationsError) { try open?.close() } catch { throw LarderError(error) }
    }
}

extension LarderError {
    init(_ error: OperationsError) {
        if [.closed, .parked].contains(error.code) {
            self = .parked
            cause = error
        } else if error.code == .suspended {
            self = .suspended
            cause = error
        } else if error.code == .filesProtected {
            self = .protected(cause: error)
        } else {
            self.init(Code(rawValue: error.code.rawValue), error.message, cause: error)
            mutation = error.mutation.map(MutationID.init)
            (unsentMutations, unsentUploads) = (error.unsent?.mutations, error.unsent?.uploads)
        }
    }
}
