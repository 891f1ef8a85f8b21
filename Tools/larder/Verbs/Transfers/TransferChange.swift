import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

/// A verb that works on transfers.
protocol TransferChange: RowChange where State == TransferState {}

extension TransferChange {
    static var row: String { "transfer" }
    static func unknown(_ id: UUID) -> Failure { .unknownTransfer(id) }

    static func ids(
        _ database: OperationsDatabase, in states: Set<TransferState>, of owners: RowOwners
    ) throws -> [UUID] {
        try database.transfers.list(states: states).filter { owners.includes($0.partition) }.map(\.id)
    }
}

extension Transfers {
    struct Pause: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Holds transfers; what has arrived stays. Wants --write.",
            discussion: "A program that carries it out stops within a second.")
        static let verb = "pause", done = "paused", purpose = "holding transfers"
        static let states: Set<TransferState> = [.pending, .running]

        @OptionGroup var target: RowOptions<TransferState>

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in
                try await database.transfers.pause(id)
                return nil
            }
        }
    }

    struct Resume: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Lets paused transfers go on where they were. Wants --write.",
            discussion: "The store's program carries it out; this command does not.")
        static let verb = "resume", done = "resumed", purpose = "letting transfers go on"
        static let states: Set<TransferState> = [.paused]

        @OptionGroup var target: RowOptions<TransferState>

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in
                try await database.transfers.resume(id)
                return nil
            }
        }
    }

    struct Cancel: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Gives transfers up. Wants --write.",
            discussion: """
                What it has left behind is removed by the store's program, or by transfers gc. The mutations that wait \
                for it are set aside.
                """)
        static let verb = "cancel", done = "cancelled", purpose = "giving transfers up"
        static let states: Set<TransferState> = [.pending, .running, .paused]

        @OptionGroup var target: RowOptions<TransferState>

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in try await database.transfers.cancel(id, now: Date()) }
        }
    }

    struct Retry: TransferChange {
        static let configuration = CommandConfiguration(
            abstract: "Makes failed transfers pending again. Wants --write.",
            discussion: """
                An upload sends the file as it is now. The mutations that were set aside because of it wait for it \
                again. The store's program carries it out; this command does not.
                """)
        static let verb = "retry", done = "retried", purpose = "trying transfers again"
        static let states: Set<TransferState> = [.failed]

        @OptionGroup var target: RowOptions<TransferState>

        func change() -> (UUID, OperationsDatabase) async throws -> [UUID]? {
            { id, database in
                let found = try database.transfers.find(id)
                // Of one that has not failed, that is told, and not what may be wrong with its file.
                let isUpload = found?.state == .failed && found?.kind == .upload
                let source = isUpload ? try found.map { try FileIdentity(ofSource: $0.path) } : nil
                try await database.transfers.retry(id, source: source)
                return nil
            }
        }
    }
}
