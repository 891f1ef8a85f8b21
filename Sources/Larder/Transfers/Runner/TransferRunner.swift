internal import Foundation
internal import LarderOperations
internal import Synchronization

/// Carries out a partition's transfers: several side by side, each in parts where it is large.
///
/// Of all runners of a partition, in all processes, one works and the others stand by: it holds a lock of the kernel's
/// that is free as soon as it dies. What a dead one left goes on where it was: an upload with the parts that the
/// storage lists, a download with the ranges that are in its partial file and have their checksums.
///
/// What fails and may go better is tried again after a pause that grows; what will not go better on its own is failed,
/// with the reason, and nothing of it is left at the storage or in the store's folder.
///
/// ```swift
/// let runner = TransferRunner(app, storage: s3)
/// try await runner.run()              // until its task is cancelled, or a ServiceGroup shuts down
/// ```
public final class TransferRunner: Sendable {
    /// How transfers are carried out. Sizes in bytes.
    public struct Options: Sendable {
        /// How many transfers are under way side by side.
        public var maximumTransfers = 8
        /// How many exchanges that carry bytes there are with one host at a time.
        public var connectionsPerHost = 6
        /// Files of more than this are sent in parts.
        public var multipartThreshold: Int64 = 16 << 20
        /// How large parts and ranges are; larger where the storage would not take so many.
        public var partSize: Int64 = 8 << 20
        /// How many bytes may be moved in a second, both ways together; nil for as many as there can be.
        public var bandwidth: Int64?
        /// After so long without a byte an exchange is given up, and tried again.
        public var idle = Duration.seconds(30)
        /// How long an exchange may take that carries no bytes.
        public var timeout = Duration.seconds(30)
        /// How long the storage may take to put an object together from its parts.
        public var completionTimeout = Duration.seconds(600)
        /// How long to wait after a failure.
        public var backoff = Backoff(first: .seconds(1), cap: .seconds(120))
        /// After so many failures of the server or the connection in a row, with nothing that arrived between them, a
        /// transfer is failed. That the server cannot be reached, or asks for patience, is none.
        public var maximumFaults = 10
        /// Whether the network is there.
        public var connectivity: any Connectivity = AssumedConnectivity()
        /// A number from 0 to 1, by which pauses are spread; tests hold it.
        public var random: @Sendable () -> Double = { .random(in: 0...1) }

        /// Called after each step; for programs that are killed there.
        package var afterStep: @Sendable (TransferStep) -> Void = { _ in }

        /// Eight transfers, six connections with a host, parts of 8 MiB, no limit of bandwidth.
        public init() {}
    }

    /// What a runner is doing. While it waits for somebody to sign in, the storage is asked again after a pause.
    public typealias State = RunnerState

    static let lockSuffix = ".transfers"

    struct Progress {
        /// Those under way.
        var busy: Set<UUID> = []
        /// What carries them out.
        var tasks: [UUID: Task<Void, Never>] = [:]
        /// Those of them that are noted as running.
        var begun: Set<UUID> = []
        /// Failures in a row.
        var faults: [UUID: Int] = [:]
        /// How often each has begun anew because the storage had forgotten it, whatever has arrived since.
        var restarts: [UUID: Int] = [:]
        /// How often in a row the credentials were not taken, and until when nothing is begun because of that.
        var refusals = 0
        var refusedUntil: ContinuousClock.Instant?
    }

    let core: PartitionCore
    let storage: any ObjectTransport
    let options: Options
    let lifecycle: RunnerLifecycle
    let progress = Mutex(Progress())

    /// - Parameters:
    ///   - partition: Whose transfers are carried out.
    ///   - storage: The way to where its objects are.
    public init(_ partition: Partition, storage: any ObjectTransport, options: Options = Options()) {
        core = partition.core
        self.storage = storage
        self.options = options
        lifecycle = RunnerLifecycle(core, bell: core.transfers.bell, lockSuffix: Self.lockSuffix)
    }

    /// What it is doing now.
    public var state: State { lifecycle.state }

    /// Goes on at once after somebody has signed in.
    public func resume() {
        progress.withLock { progress in
            progress.refusals = 0
            progress.refusedUntil = nil
        }
        core.transfers.bell.ring()
    }

    // MARK: What attempts tell

    func noteBegun(_ transfer: UUID) { progress.withLock { _ = $0.begun.insert(transfer) } }

    /// - Returns: How many there were in a row.
    func countFault(_ error: any Error, of transfer: UUID) -> Int {
        progress.withLock { progress in
            progress.faults[transfer, default: 0] += 1
            if (error as? ObjectError)?.code == .noSuchUpload { progress.restarts[transfer, default: 0] += 1 }
            return max(progress.faults[transfer, default: 0], progress.restarts[transfer, default: 0])
        }
    }

    /// Something has arrived.
    func noteArrival(of transfer: UUID) {
        progress.withLock { progress in
            progress.faults[transfer] = nil
            progress.refusals = 0
        }
    }

    /// It has failed: whoever retries it begins to count anew.
    func forgetFaults(of transfer: UUID) {
        progress.withLock { progress in
            progress.faults[transfer] = nil
            progress.restarts[transfer] = nil
        }
    }

    /// The credentials were not taken. Those under way that are told the same count once.
    func noteRefusal() {
        progress.withLock { progress in
            if let time = progress.refusedUntil, time > .now { return }
            progress.refusals += 1
            let pause = options.backoff.pause(after: progress.refusals, fraction: 1)
            progress.refusedUntil = .now + pause
        }
    }
}
