import ArgumentParser
import Foundation
import LarderCommandLine
import LarderOperations

extension Transfers {
    struct Watch: Verb {
        static let configuration = CommandConfiguration(
            abstract: "Prints a line whenever a transfer begins, fails, is held or ends.",
            discussion: """
                Of one transfer, or of all that have not ended. The lines are those of transfers list; the first tell \
                how things are. It ends when all have ended, when it is interrupted, or when it has printed --count \
                lines. States that follow each other within a tenth of a second may be left out, the last never is. On \
                a terminal there is a bar of progress for each that is under way, in whatever process: bytes \
                of whole parts.
                """)
        static let name = "transfers watch"

        @OptionGroup var store: StoreOptions
        @Argument(help: ArgumentHelp("The transfer's id.", valueName: "id"), transform: Transfers.id) var id: UUID?
        @Option(help: ArgumentHelp("End after so many lines.", valueName: "n"))
        var count: Int?

        /// How long it may take until a change is seen.
        private static let pause = Duration.milliseconds(100)

        func validate() throws {
            guard count ?? 1 > 0 else { throw ValidationError("--count must be at least 1.") }
        }

        func perform(_ output: Output) async throws {
            let interruption = Interruption()
            let isKnown: Void? = try await store.folder().withOperations(.reading, output) { database in
                let transfers = database.transfers
                var screen = output.isJSON ? nil : RedrawnLines()
                var (news, bars, told) = (TransferNews(of: id), TransferBars(), 0)
                while true {
                    let start = SuspendingClock.now
                    let found = try news.look(transfers)
                    if !found.news.isEmpty { try screen?.draw([]) }
                    for transfer in found.news.prefix(count.map { $0 - told } ?? .max) {
                        let row = OwnedRow(row: transfer, owner: try RowOwners(database)[transfer.partition])
                        try output.result(row.summary, text: transfer.line)
                        told += 1
                    }
                    if found.isOver || told == count { return }
                    if let columns = screen?.size.columns {
                        try screen?.draw(bars.lines(of: found.running, columns: columns))
                    }
                    // Of many transfers a look takes long, and must not be all that this machine does.
                    let pause = max(Self.pause, start.duration(to: .now) * 9)
                    if await interruption.wait(for: pause) {
                        try screen?.draw([])
                        return
                    }
                }
            }
            if isKnown == nil, let id { throw Failure.unknownTransfer(id) }
        }
    }
}
