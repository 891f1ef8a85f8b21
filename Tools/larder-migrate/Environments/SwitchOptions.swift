import ArgumentParser
import Foundation
import LarderCommandLine
import LarderFiles
import LarderOperations

/// What becomes of the mutations of the partition that is left.
struct PendingWorkOptions: ParsableArguments {
    @Flag(help: "The mutations stay, and go on when the environment is the current one again. The default.")
    var park = false
    @Flag(help: "Mutations that were not sent go along.")
    var carry = false
    @Flag(help: "The mutations are given up.")
    var discard = false

    func validate() throws {
        guard [park, carry, discard].count(where: \.self) <= 1 else {
            throw ValidationError("Give one of --park, --carry and --discard.")
        }
    }

    var choice: PendingWork { carry ? .carry : discard ? .discard : .park }
}

/// Who works with the environment.
struct UserOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The user. Default: the user who worked with it last.", valueName: "id"))
    var user: String?
    @Flag(help: "The guest, who is not signed in.")
    var guest = false

    func validate() throws {
        guard user == nil || !guest else { throw ValidationError("Give either --user or --guest.") }
        guard user != "" else { throw ValidationError("The user's id is empty.") }
    }

    func destination(_ environment: String) -> Destination {
        Destination(environment: .stored(environment), user: guest ? .guest : user.map { .user($0) } ?? .last)
    }
}

extension SwitchReport {
    var json: JSONText {
        .object([
            ("isSwitch", .boolean(isSwitch)), ("from", from?.json ?? .null), ("to", to?.json ?? .null),
            ("carried", .int(carried)), ("discarded", .int(discarded)),
            ("carriedTransfers", .int(carriedTransfers)), ("discardedTransfers", .int(discardedTransfers)),
        ])
    }

    var text: String {
        guard isSwitch else { return "\(to?.partition.label ?? "none") is the current one already" }
        var lines = ["from \(from?.text ?? "none")", "to   \(to?.text ?? "none")"]
        if carried > 0 { lines.append("carried along: \(carried.counted("mutation"))") }
        if discarded > 0 { lines.append("given up: \(discarded.counted("mutation"))") }
        if carriedTransfers > 0 { lines.append("carried along: \(carriedTransfers.counted("transfer"))") }
        if discardedTransfers > 0 { lines.append("given up: \(discardedTransfers.counted("transfer"))") }
        return lines.joined(separator: "\n")
    }
}

extension SwitchReport.Side {
    /// Without the partition's own name: a plan and what comes of it are alike where one has to be made.
    fileprivate var json: JSONText {
        .object([
            ("environment", partition.environment.map(JSONText.string) ?? .null),
            ("user", partition.user.map(JSONText.string) ?? .null), ("before", before.json), ("after", after.json),
        ])
    }

    fileprivate var text: String {
        Output.oneLine(
            "\(partition.label): \(after.pending) pending, \(after.inFlight) in flight, "
                + "\(after.acknowledged) answered, \(after.deadLetters) set aside"
                + (after.transfers + after.failedTransfers == 0
                    ? "" : "; \(after.transfers.counted("transfer")) to do, \(after.failedTransfers) failed"))
    }
}

extension SwitchReport.Work {
    fileprivate var json: JSONText {
        .object([
            ("pending", .int(pending)), ("inFlight", .int(inFlight)), ("answered", .int(acknowledged)),
            ("setAside", .int(deadLetters)), ("transfers", .int(transfers)), ("failedTransfers", .int(failedTransfers)),
        ])
    }
}
