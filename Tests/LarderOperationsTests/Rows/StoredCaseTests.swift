import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("The numbers that are stored", .timeLimit(.minutes(10)))
struct StoredCaseTests {
    private struct Column: Sendable, CustomTestStringConvertible {
        var table: String
        var column: String
        var numbers: [Int: String]
        var testDescription: String { "\(table).\(column)" }

        init<Case: StoredCase>(_ table: String, _ column: String, _ type: Case.Type) {
            self.table = table
            self.column = column
            numbers = Dictionary(uniqueKeysWithValues: Case.allCases.map { ($0.rawValue, Self.words("\($0)")) })
        }

        /// `inFlight` as comments say it: in flight.
        private static func words(_ name: String) -> String {
            name.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : "\($1)" }
        }
    }

    private static let columns = [
        Column("mutation", "state", MutationState.self), Column("outcome", "kind", Outcome.Kind.self),
        Column("transfer", "state", TransferState.self), Column("transfer", "kind", TransferDraft.Kind.self),
    ]

    /// The lines of a table as the migrations make it.
    private func definition(_ table: String) throws -> [Substring] {
        let text = Migration.all.map { String(decoding: $0.sql, as: UTF8.self) }.joined(separator: "\n")
        let start = try #require(text.range(of: "CREATE TABLE \(table) (\n"))
        let end = try #require(text.range(of: "\n) STRICT", range: start.upperBound..<text.endIndex))
        return text[start.upperBound..<end.lowerBound].split(separator: "\n")
    }

    @Test("A moment that is past all that can be stored is the last, and one that is before all of it the first")
    func moments() {
        for seconds in [1e300, .infinity] {
            #expect(Date(timeIntervalSince1970: seconds).milliseconds == .max)
            #expect(Date(timeIntervalSince1970: -seconds).milliseconds == .min)
        }
        #expect(Date(timeIntervalSince1970: 1.5).milliseconds == 1_500)
    }

    @Test("The migrations' comments give each number the name that the code gives it", arguments: columns)
    private func named(_ column: Column) throws {
        let lines = try definition(column.table).map { $0.trimmingCharacters(in: .whitespaces) }
        let place = try #require(lines.firstIndex { $0.hasPrefix("\(column.column) INTEGER") })
        let comment = lines[place - 1].dropFirst("-- ".count).split(separator: ", ")
        let documented = comment.map { $0.split(separator: " ", maxSplits: 1) }
        let numbers = documented.map { (Int($0[0]) ?? -1, String($0[1])) }
        #expect(Dictionary(uniqueKeysWithValues: numbers) == column.numbers)
    }

    @Test("The migrations' checks allow each number that has a name, and no other", arguments: columns)
    private func checked(_ column: Column) throws {
        let line = try #require(
            definition(column.table).first { $0.contains(" \(column.column) INTEGER") })
        let check = try #require(line.firstMatch(of: /CHECK (\(.*\))/)?.1)
        let allowed = try DatabaseQueue().read { db in
            try (-1...100).filter {
                try Bool.fetchOne(db, sql: "SELECT \(check) FROM (SELECT \($0) AS \(column.column))") ?? false
            }
        }
        #expect(allowed == column.numbers.keys.sorted())
        #expect(!line.contains("DEFAULT"))
    }

    @Test("The index of what may be in flight, acknowledged, pending or left has the condition that the code asks for")
    func indices() async throws {
        let expected = [
            "mutation_in_flight": "state = \(mutation: .inFlight)",
            "mutation_done": "state >= \(mutation: .acknowledged)",
            "mutation_expiry": "state = \(mutation: .pending) AND expires IS NOT NULL",
            "transfer_turn": "state = \(transfer: .pending)",
            "transfer_work": "state IN \(transfer: [.running, .cancelling])",
            "transfer_end": "state >= \(transfer: .done)",
            "transfer_place": "kind = \(kind: .upload) AND state IN \(transfer: [.pending, .running])",
        ]
        try await withOperations { database in
            let found = try database.pool.read { db in
                try Row.fetchAll(db, sql: "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql NOTNULL")
            }
            let conditions = Dictionary(
                uniqueKeysWithValues: found.map { row in
                    let parts = (row["sql"] as String).components(separatedBy: " WHERE ")
                    return (row["name"] as String, parts.count > 1 ? parts[1] : "")
                })
            for (index, condition) in expected { #expect(conditions[index] == condition, "\(index)") }
        }
    }

    @Test("A number in the SQL of a statement is its case's")
    func literals() {
        #expect("\(mutation: .deadLetter) \(outcome: .discarded) \(kind: .download)" == "3 1 1")
        #expect("\(transfer: .cancelled) \(transfer: [.running, .pending, .failed])" == "6 (0, 1, 3)")
    }

    @Test("A number without a name is a damaged row")
    func unknown() {
        for number: Int64 in [-1, 4, .min, .max] {
            #expect(throws: OperationsError.self) { try MutationState(stored: number) }
        }
    }

    @Test("No statement writes a state or a kind as a number")
    func sources() throws {
        let folder = packageRoot.appending(path: "Sources/LarderOperations").resolvingSymlinksInPath()
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        #expect(files.count > 80)
        for file in files {
            let text = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
            let found = text.matches(of: /\b(state|kind) (=|<>|<|>|<=|>=|IN) \(?[0-9]/)
            #expect(found.isEmpty, "\(file): \(found.map(\.0))")
        }
    }

    @Test("The articles' tables have each state under the name that tools print")
    func documented() throws {
        let states = [
            "Mutations": MutationState.allCases.map(\.description),
            "FileTransfers": TransferState.allCases.map(\.description),
        ]
        for (article, names) in states {
            let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/\(article).md").resolvingSymlinksInPath()
            let rows = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").filter { $0.hasPrefix("|") }
            let words = Set(rows.flatMap { $0.split { !$0.isLetter } })
            for name in names { #expect(words.contains(Substring(name)), "\(article): \(name)") }
        }
    }
}
