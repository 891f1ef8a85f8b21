import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderImport
import LarderOperations

struct Import: Verb {
    static let configuration = CommandConfiguration(
        abstract: "Takes over the cache of another library, and the mutations that wait in it.",
        discussion: """
            Without --write it only tells what it would take, and what it cannot take, with the reasons. The files are \
            never changed, and what the store knows already stays: it is newer. Doing it twice takes nothing twice.

            With --mutations those that wait are queued here as well, in their order: the other program must not send \
            them any more. What was being sent, or has a file with it, is told and not taken.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var schema: SchemaOptions
    @OptionGroup var backup: BackupOptions
    @OptionGroup var lock: LockOptions
    @Option(
        help: ArgumentHelp(
            "Whose files they are: appsync (a folder with its databases) or apollo (a file).", valueName: "library"))
    var from: ImportFormat
    @Option(help: ArgumentHelp("The prefix of an AppSync client that has one.", valueName: "prefix"))
    var prefix: String?
    @Flag(help: "Also queue the mutations that wait there.")
    var mutations = false
    @Flag(help: "Do it, and do not only tell what would be done.")
    var write = false
    @ArgumentParser.Argument(help: ArgumentHelp("The folder or file.", valueName: "path"))
    var path: String

    func perform(_ output: Output) async throws {
        let schemaText = try schema.texts()
        guard !schemaText.isEmpty else { throw Failure(usage: "No schema: name its file by --schema") }
        let store = try MigratedStore(store, timeout: lock.duration(), mayBeNew: true, output)
        try store.requireCurrentWhereVariableDecides()
        var options = ImportOptions()
        options.takesMutations = mutations
        options.prefix = prefix
        let report: ImportReport
        var made: URL?
        do {
            let source = try ImportSource(
                from, path: path, schema: Schema(parsing: schemaText), options: options)
            if write {
                // What cannot be read at all is found out before anything is done.
                _ = try await source.inspect()
                try await store.requireMigrated()
                let isNew = try !store.hasAnything
                if mutations { try store.makeDatabase() }
                (report, made) = try await store.withLock(for: "import") { _ in
                    // Opening a partition under this lock does not finish it.
                    try StoreRestoration.finish(store.url, options: store.options)
                    let made = isNew ? nil : try backupFirst(store)
                    return (try await take(source, into: store, schemaText), made?.folder)
                }
            } else {
                report = try await rehearse(source, in: store, schemaText)
            }
        } catch let error as ImportError { throw Failure(error) }
        if !write { output.note("nothing was written; --write does it") }
        let json = try report.json
        try output.result(
            .object([
                ("report", .raw(json)), ("backup", made.map { .string($0.path) } ?? .null),
            ]),
            text: report.text + (made.map { "\nthe backup is \($0.path)" } ?? ""))
    }

    private func backupFirst(_ store: MigratedStore) throws -> StoreBackup? {
        guard let folder = backup.folder(of: store.url) else { return nil }
        return try StoreBackup.make(of: store.url, into: folder, options: store.options)
    }

    /// What would be taken: a store that is there knows some of it already.
    private func rehearse(
        _ source: ImportSource, in place: MigratedStore, _ schemaText: [String]
    ) async throws -> ImportReport {
        guard try place.hasAnything else { return try await source.inspect() }
        try await place.requireMigrated()
        var options = place.options
        options.isReadOnly = true
        let store = try Store.open(at: place.url, schemaText: schemaText, options: options)
        defer { try? store.close() }
        let partition: Partition
        do throws(LarderError) { partition = try store.partition() } catch {
            // Nothing was ever fetched into it.
            guard error.code.rawValue == "records.missing" else { throw error }
            return try await source.inspect()
        }
        return try await source.run(into: partition, isDryRun: true)
    }

    private func take(
        _ source: ImportSource, into place: MigratedStore, _ schemaText: [String]
    ) async throws -> ImportReport {
        let store = try Store.open(at: place.url, schemaText: schemaText, options: place.options)
        do {
            let report = try await source.run(into: try store.partition())
            try store.close()
            return report
        } catch {
            // What failed first is what is told.
            try? store.close()
            throw error
        }
    }
}

extension ImportFormat: ExpressibleByArgument {}

extension MigratedStore {
    /// Refuses to take data into another environment than the one that the variable says.
    fileprivate func requireCurrentWhereVariableDecides() throws {
        guard let name = DecidedEnvironment.saidByVariable else { return }
        let current = try withEnvironments { try $0.current()?.partition?.environment } ?? nil
        guard current != name else { return }
        throw Failure(
            .decidedElsewhere, .refused,
            "The variable \(DecidedEnvironment.variable) says \(name), and what is imported would go to the current "
                + "environment, \(current ?? "none"); enter \(name) first, or unset the variable",
            details: [("environment", .string(name))])
    }
}

extension Failure {
    fileprivate init(_ error: ImportError) {
        let exit: ExitStatus =
            switch error.code {
            case .missing, .foreign, .ambiguous, .tooLarge, .unreadable, .damaged: .usage
            case .busy, .store: .failure
            }
        self.init(Code(rawValue: error.code.rawValue), exit, error.message)
    }
}

extension ImportReport {
    fileprivate var json: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }

    fileprivate var text: String {
        func line(_ name: String, _ tally: Tally, _ item: Omission.Item?) -> String {
            let left = item.map { ", \(omitted($0)) not taken" } ?? ""
            return "\(name): \(tally.taken) \(isDryRun ? "to take" : "taken"), \(tally.present) there already\(left)"
        }
        var lines = [
            "records read: \(records), \(parts) of them parts of others, \(omitted(.record)) not taken",
            line("objects", objects, nil), line("fields of objects", fields, .field),
            line("fields of the root", rootFields, nil), line("mutations", mutations, .mutation),
        ]
        if subscriptions > 0 { lines.append("subscriptions: \(subscriptions), of which nothing is taken") }
        for omission in omissions {
            let examples = omission.examples.map(Output.oneLine).joined(separator: "; ")
            lines.append("  \(omission.count) x \(omission.item.rawValue): \(omission.reason.text): \(examples)")
        }
        return lines.joined(separator: "\n")
    }
}
