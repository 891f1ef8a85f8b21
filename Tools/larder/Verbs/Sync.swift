import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderFiles

struct Sync: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Follows a server by a delta query, and says how far it has come.",
        discussion: """
            The operation asks for one field with the variables lastSync and nextToken, as AppSync's sync queries do. \
            The first time everything is walked through, then what has changed; an interrupted walk goes on with its \
            next page.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var operation: OperationOptions
    @OptionGroup var server: ServerOptions
    @OptionGroup var time: TimeoutOptions
    @Option(
        name: .customLong("delta-lifetime"),
        help: ArgumentHelp("For how long the server tells of a change.", valueName: "seconds"))
    var deltaLifetime = 1_800
    @Option(help: ArgumentHelp("Fetch so many pages at most; the next call goes on.", valueName: "n"))
    var pages: Int?

    func validate() throws {
        guard pages ?? 1 > 0 else { throw ValidationError("--pages must be at least 1.") }
        guard deltaLifetime > 0 else { throw ValidationError("--delta-lifetime must be at least 1 second.") }
    }

    func perform(_ output: Output) async throws {
        let (folder, schema, operation) = (try store.folder(partition), try schema.texts(), try operation.value())
        var synchronization = Synchronization(operation)
        synchronization.deltaLifetime = .seconds(deltaLifetime)
        synchronization.maximumPageCount = pages
        (synchronization.headers, synchronization.timeout) = (try server.sentHeaders(), try time.value())
        let (report, positions, subscriptions) = try await server.withTransport { [synchronization] transport in
            try await folder.withPartition(
                .writing, schema: schema, asking: (operation, .query), transport: transport, output
            ) { partition in
                (
                    try await partition.sync(synchronization), try partition.synchronizations(),
                    try partition.subscriptions()
                )
            }
        }
        try output.result(
            .object([
                ("pages", .int(report.pageCount)), ("objects", .int(report.objectCount)),
                ("isBase", .boolean(report.isBase)), ("isFinished", .boolean(report.isFinished)),
                ("positions", .array(positions.map(\.result))),
                (
                    "subscriptions",
                    .array(
                        subscriptions.map {
                            .object([
                                ("name", .string($0.name)),
                                ("completeUntil", .string($0.completeUntil.text)),
                            ])
                        })
                ),
            ]),
            text: "\(report.objectCount.counted("object")) on \(report.pageCount.counted("page"))"
                + (report.isBase ? ", everything" : ", what has changed")
                + (report.isFinished ? "" : ", not to the end")
                + subscriptions.map {
                    "\n\(Output.oneLine($0.name)): complete until \($0.completeUntil.shown)"
                }.joined())
    }
}

extension SyncStatus {
    fileprivate var result: JSONText {
        .object([
            ("name", .string(name)), ("startedAt", milliseconds.map { .int(Int($0)) } ?? .null),
            ("openPages", openPageCount.map(JSONText.int) ?? .null),
        ])
    }
}
