import Foundation
import Larder
import LarderCommandLine
import LarderFiles

/// What a run has carried out so far.
struct RunNews {
    /// What had not ended when it was looked at last.
    private var open: Set<MutationID> = []
    private var setAsideBefore: Set<MutationID> = []
    private var openTransfers: Set<TransferID> = []
    /// What waits, in its order, and why where that is known.
    private var waiting: [(subject: String, id: String, reason: Reason?)] = []
    private var toldReasons: Set<String> = []
    private var arrived: Int64 = 0
    private let began = Date()
    /// When something ended, or bytes of a file arrived.
    private(set) var lastProgress = SuspendingClock.now
    private var states: (RunnerState, RunnerState?)?
    private var applied = 0
    private var setAside: [MutationID] = []
    private var (transferred, failedTransfers) = (0, 0)
    /// Whether nothing was left to carry out.
    var isIdle = false

    private struct Reason {
        var message: String
        var time: Date
        /// Whether it is tried again once there is other proof of who asks, and not after a pause.
        var isOfSignIn: Bool

        init(_ failure: MutationStatus.Failure) {
            (message, time, isOfSignIn) = (failure.message, failure.time, failure.kind == .notSignedIn)
        }

        init(_ failure: TransferStatus.Failure) {
            (message, time) = (failure.message, failure.time)
            isOfSignIn = [.objectInvalidCredentials, .objectExpiredCredentials].contains(failure.code)
        }
    }

    init(_ partition: Partition) throws {
        let mutations = try partition.mutations()
        open = Set(mutations.filter { !$0.isEnded }.map(\.id))
        setAsideBefore = Set(mutations.filter(\.isEnded).map(\.id))
        openTransfers = Set(try partition.transfers.list().filter { !$0.isEnded }.map(\.id))
    }

    var hasFailures: Bool { !setAside.isEmpty || failedTransfers > 0 }

    /// Prints a line for each mutation and transfer that has ended since the last look; with `--json` none.
    mutating func tell(_ partition: Partition, _ output: Output) throws {
        let lines = try look(partition)
        if !lines.isEmpty { lastProgress = .now }
        for line in lines where !output.isJSON { try output.result(.null, text: Output.oneLine(line)) }
    }

    /// Why the first of what waits could not be carried out, each reason once.
    mutating func waits() -> [String] {
        var lines: [String] = []
        for (subject, id, reason) in waiting {
            guard let reason, reason.time > began, toldReasons.insert(reason.message).inserted else { continue }
            let remedy = reason.isOfSignIn ? "waits for a sign-in" : "is tried again after pauses"
            lines.append("waiting: \(subject) \(id) \(remedy): \(reason.message)")
        }
        return lines
    }

    /// Whether nothing was left when it was looked at last.
    var isEmpty: Bool { waiting.isEmpty }

    /// How much waits, for people.
    private var count: String {
        let mutations = waiting.count { $0.subject == Self.mutation }
        let parts = [(mutations, Self.mutation), (waiting.count - mutations, Self.transfer)].filter { $0.0 > 0 }
        return parts.map { $0.counted($1) }.joined(separator: " and ")
    }

    /// What a run that is idle leaves queued; nil where that is nothing.
    var leftText: String? {
        guard !isEmpty else { return nil }
        return "\(count) stay\(waiting.count == 1 ? "s" : "") queued, and cannot be carried out here: what waits for a "
            + "mutation that was set aside, for a paused transfer, or for a storage that --object-region and "
            + "--object-storage do not name"
    }

    /// What remains of a run that was to end when nothing is left.
    func remaining(givingUpAfter patience: Duration?) -> Failure {
        let hasGivenUp = patience.map { lastProgress.duration(to: .now) > $0 } ?? false
        let beginning =
            hasGivenUp ? "Nothing was carried out for \(patience?.text ?? ""), and" : "The run was interrupted, and"
        let names = waiting.prefix(10).map { "\($0.subject) \($0.id)" }.joined(separator: ", ")
        let rest = waiting.count > 10 ? " and \(waiting.count - 10) more" : ""
        let reason = waiting.lazy.compactMap(\.reason).first.map { "; the last failure is: \($0.message)" } ?? ""
        return Failure(
            .remaining, .failure,
            "\(beginning) \(count) remain\(waiting.count == 1 ? "s" : ""): \(names)\(rest)\(reason)")
    }

    private static let (mutation, transfer) = ("mutation", "transfer")

    private mutating func look(_ partition: Partition) throws -> [String] {
        var lines: [String] = []
        let mutations = try partition.mutations()
        let present = Dictionary(mutations.map { ($0.id, $0) }) { $1 }
        for status in mutations where status.state == .deadLetter && !setAsideBefore.contains(status.id) {
            setAsideBefore.insert(status.id)
            open.remove(status.id)
            setAside.append(status.id)
            lines.append("set aside \(status.id)" + (status.failure.map { ": \($0.message)" } ?? ""))
        }
        for id in open where present[id] == nil {
            open.remove(id)
            guard let status = try partition.mutation(id).status() else { continue }
            if status.state == .applied { applied += 1 }
            lines.append("\(status.state.rawValue) \(id)")
        }
        for status in mutations where !status.isEnded {
            open.insert(status.id)
            setAsideBefore.remove(status.id)
        }
        let transfers = try partition.transfers.list()
        for status in transfers where status.isEnded && openTransfers.contains(status.id) {
            openTransfers.remove(status.id)
            if status.state == .done { transferred += 1 }
            if status.state == .failed { failedTransfers += 1 }
            lines.append(
                "\(status.state.rawValue) \(status.kind.rawValue) \(status.id)"
                    + (status.state == .failed ? status.failure.map { ": \($0.message)" } ?? "" : ""))
        }
        openTransfers.formUnion(transfers.filter { !$0.isEnded }.map(\.id))
        let total = transfers.reduce(0) { $0 + $1.arrived }
        if total > arrived { lastProgress = .now }
        arrived = total
        waiting =
            mutations.filter { !$0.isEnded }.map { status in
                (Self.mutation, "\(status.id)", status.failure.map { Reason($0) })
            }
            + transfers.filter { !$0.isEnded }.map { status in
                (Self.transfer, "\(status.id)", status.failure.map { Reason($0) })
            }
        return lines
    }

    /// The lines about the runners that are new since the last look.
    mutating func change(_ mutations: RunnerState, _ transfers: RunnerState?) -> String? {
        if let states, states == (mutations, transfers) { return nil }
        states = (mutations, transfers)
        return switch (mutations, transfers) {
        case (.standingBy, _), (_, .standingBy): "another process carries out what waits here; standing by"
        case (.unusableServer, _): "what answers at the endpoint is no GraphQL server; asking again after pauses"
        case (.waitingForSignIn, _): "the server does not know the user"
        case (_, .waitingForSignIn): "the storage does not take the credentials"
        case (.offline, _), (_, .offline): "there is no network"
        default: nil
        }
    }

    var json: JSONText {
        .object([
            ("isIdle", .boolean(isIdle)), ("sent", .int(applied)),
            ("setAside", .strings(setAside.map(\.description))), ("transferred", .int(transferred)),
            ("failedTransfers", .int(failedTransfers)),
            ("remaining", .strings(waiting.filter { $0.subject == Self.mutation }.map(\.id))),
            ("remainingTransfers", .strings(waiting.filter { $0.subject == Self.transfer }.map(\.id))),
        ])
    }

    var summary: String {
        "\(applied.counted("mutation")) applied, \(setAside.count) set aside; \(transferred.counted("transfer")) done, "
            + "\(failedTransfers) failed"
    }
}

extension Duration {
    fileprivate var text: String { "\(Int((self / .seconds(1)).rounded(.up))) s" }
}
