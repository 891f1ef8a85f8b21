import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

/// A verb that works on one transfer.
protocol TransferChange: Verb {
    /// What the verb is called after `transfers`, and in `did` of its result.
    static var verb: String { get }
    /// The same as something that was done.
    static var done: String { get }
    /// What is done with `--write` only.
    static var purpose: String { get }

    var target: TransferOptions { get }

    /// - Returns: The mutations that were set aside because of it; nil of a verb that sets none aside.
    func change(_ transfers: TransferTable) async throws -> [UUID]?
}

/// What all of them take.
struct TransferOptions: ParsableArguments {
    @OptionGroup var store: StoreOptions
    @OptionGroup var permission: WritePermission
    @ArgumentParser.Argument(help: ArgumentHelp("The transfer's id.", valueName: "id"), transform: Transfers.id)
    var id: UUID
}

extension TransferChange {
    static var name: String { "transfers \(verb)" }
    var store: StoreOptions { target.store }

    func perform(_ output: Output) async throws {
        try target.permission.require(for: Self.purpose)
        let others = try await store.folder().withTransfers(.writing, output) { try await change($0) }
        guard let others else { throw Failure.unknownTransfer(target.id) }
        let id = target.id.text
        try output.result(
            .object(
                [("id", .string(id)), ("did", .string(Self.verb))]
                    + (others.map { [("setAside", .strings($0.map(\.text)))] } ?? [])),
            text: "\(Self.done) \(id)" + (others ?? []).map { "\nset aside mutation \($0.text)" }.joined())
    }
}

extension Transfers {
    struct Pause: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Holds a transfer; what has arrived stays. Wants --write.",
            discussion: "A program that carries it out stops within a second.")
        static let verb = "pause", done = "paused", purpose = "holding it"

        @OptionGroup var target: TransferOptions

        func change(_ transfers: TransferTable) async throws -> [UUID]? {
            try await transfers.pause(target.id)
            return nil
        }
    }

    struct Resume: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Lets a paused transfer go on where it was. Wants --write.",
            discussion: "The store's program carries it out; this command does not.")
        static let verb = "resume", done = "resumed", purpose = "letting it go on"

        @OptionGroup var target: TransferOptions

        func change(_ transfers: TransferTable) async throws -> [UUID]? {
            try await transfers.resume(target.id)
            return nil
        }
    }

    struct Cancel: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Gives a transfer up. Wants --write.",
            discussion: """
                What it has left behind is removed by the store's program, or by transfers gc. The mutations that wait \
                for it are set aside.
                """)
        static let verb = "cancel", done = "cancelled", purpose = "giving it up"

        @OptionGroup var target: TransferOptions

        func change(_ transfers: TransferTable) async throws -> [UUID]? {
            try await transfers.cancel(target.id, now: Date())
        }
    }

    struct Retry: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Makes a failed transfer pending again. Wants --write.",
            discussion: """
                An upload sends the file as it is now. The mutations that were set aside because of it wait for it \
                again. The store's program carries it out; this command does not.
                """)
        static let verb = "retry", done = "retried", purpose = "trying it again"

        @OptionGroup var target: TransferOptions

        func change(_ transfers: TransferTable) async throws -> [UUID]? {
            let found = try transfers.find(target.id)
            // Of one that has not failed, that is told, and not what may be wrong with its file.
            let isUpload = found?.state == .failed && found?.kind == .upload
            let source = isUpload ? try found.map { try FileIdentity(ofSource: $0.path) } : nil
            try await transfers.retry(target.id, source: source)
            return nil
        }
    }
}
