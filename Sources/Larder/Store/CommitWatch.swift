import Dispatch
import LarderFiles

/// Calls a closure once after each `arm`, when a process has committed something to the store, this one included.
final class CommitWatch: Sendable {
    private enum State { case asleep, armed, closed }

    private let watch: FolderWatch
    // Safe: Dispatch's objects may be used from any thread.
    private nonisolated(unsafe) let source: any DispatchSourceProtocol
    private let state = Locked(State.asleep)

    /// Nil where the system watches no folder: then others have to be looked for.
    init?(_ folder: String, _ changed: @escaping @Sendable () -> Void) {
        guard let watch = FolderWatch(folder) else { return nil }
        self.watch = watch
        let queue = DispatchQueue(label: "larder.commits")
        #if canImport(Darwin)
        // Not compiled where this is developed.
        source = DispatchSource.makeFileSystemObjectSource(
            fileDescriptor: watch.descriptor, eventMask: .attrib, queue: queue)
        #else
        source = DispatchSource.makeReadSource(fileDescriptor: watch.descriptor, queue: queue)
        #endif
        source.setEventHandler { [weak self] in
            // Not told of again until `arm`: a process may make thousands of commits meanwhile.
            if self?.watch.take() == true, self?.rest() == true { changed() }
        }
    }

    deinit { close {} }

    private func rest() -> Bool {
        state.withLock { state in
            guard state == .armed else { return false }
            state = .asleep
            source.suspend()
            return true
        }
    }

    /// Tells of the next event from now on. What was committed before can be read by now.
    func arm() {
        state.withLock { state in
            guard state == .asleep else { return }
            watch.take()
            state = .armed
            source.resume()
        }
    }

    /// Gives the descriptor back, and returns when that is done.
    func close() async {
        await withCheckedContinuation { continuation in close { continuation.resume() } }
    }

    private func close(_ done: @escaping @Sendable () -> Void) {
        state.withLock { state in
            guard state != .closed else { return done() }
            // The descriptor is open for as long as the source may look at it.
            source.setCancelHandler { [watch] in
                withExtendedLifetime(watch) {}
                done()
            }
            source.cancel()
            if state == .asleep { source.resume() }
            state = .closed
        }
    }
}
