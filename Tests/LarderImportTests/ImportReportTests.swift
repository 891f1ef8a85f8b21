import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderImport

@Suite("Reports and failures of an import", .timeLimit(.minutes(10)))
struct ImportReportTests {
    @Test("The article names every reason and every code, and no other")
    func article() throws {
        let file = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
            .appending(path: "Larder/Larder.docc/Importing.md")
        let named = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n| `").dropFirst()
            .map { String($0.prefix { $0 != "`" }) }.filter { $0.first != "{" }
        #expect(named == Omission.Reason.allCases.map(\.rawValue) + ImportError.Code.allCases.map(\.rawValue))
        #expect(Omission.Reason.allCases.allSatisfy { !$0.text.isEmpty })
    }

    @Test("The report says of each reason what that reason is")
    func texts() {
        let words: [Omission.Reason: String] = [
            .tooLarge: "larger", .noType: "__typename", .unknownType: "schema does not have",
            .unreferenced: "no identity", .unknownField: "no such field",
            .argumentsNotUnderstood: "does not fit the schema", .argumentsAmbiguous: "several ways",
            .wrongValue: "its value", .danglingReference: "does not have",
            .contradictory: "contradict", .unevenElements: "some elements", .tooDeep: "too deep",
            .deletedHere: "deleted", .refused: "refused", .outcomeUnknown: "the server may have it",
            .done: "the server has it already", .hasFile: "a file", .notAsked: "not asked for",
        ]
        for (reason, words) in words { #expect(reason.text.contains(words), "\(reason)") }
    }

    @Test("Examples are few and short, reasons stand in their order, and a report is JSON and back")
    func bounded() throws {
        var report = ImportReport(format: .apollo, isDryRun: true)
        for number in 0..<100 {
            report.omit(.record, .noType, String(repeating: "\(number)", count: 1_000))
            report.omit(.field, .wrongValue, "\(number)")
        }
        report.omit(.field, .contradictory, "x")
        #expect(report.omissions.map(\.reason) == [.contradictory, .wrongValue, .noType])
        #expect(report.omitted(.field) == 101 && report.omitted(.record) == 100)
        #expect(report.omissions.allSatisfy { $0.examples.count <= 5 && $0.examples.allSatisfy { $0.count <= 201 } })
        #expect(report.omissions.first { $0.reason == .wrongValue }?.examples == ["0", "1", "2", "3", "4"])
        let json = try JSONEncoder().encode(report)
        #expect(try JSONDecoder().decode(ImportReport.self, from: json) == report)
    }

    @Test("An example of 200 characters is not cut, and a longer one is")
    func exampleLength() {
        var report = ImportReport(format: .apollo, isDryRun: true)
        for length in [200, 201] { report.omit(.field, .refused, String(repeating: "x", count: length)) }
        let text = String(repeating: "x", count: 200)
        #expect(report.omissions.map(\.examples) == [[text, text + "…"]])
    }

    @Test("A store that cannot be written to is a failure of the store, and the source stays as it is")
    func unwritable() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: recipeSchema)
            let place = folder.appending(path: "store")
            let fixture = try ForeignFixture(folder.appending(path: "a.db").path, .records, .mutations)
            try fixture.record("Cook:1", #"{"__typename":"Cook","id":"1","name":"Ada"}"#)
            try fixture.mutation("A", #"{"query":"mutation { rate(id: 1, stars: 1) { id } }"}"#)
            fixture.close()
            let source = try ImportSource(.appSync, path: fixture.path, schema: schema)
            let store = try Store.open(at: place, schema: schema)
            let closed = try store.partition()
            try store.close()
            var options = Store.Options()
            options.isReadOnly = true
            let reading = try Store.open(at: place, schema: schema, options: options)
            for app in [closed, try reading.partition()] {
                let error = await #expect(throws: ImportError.self) { try await source.run(into: app) }
                #expect(error?.code == .store)
            }
            #expect(try await source.run(into: reading.partition(), isDryRun: true).objects == .init(taken: 1))
            try reading.close()
        }
    }

    @Test("A mutation's id depends on its record's identifier alone")
    func ids() {
        let id = AppSyncMutations.id(of: "9700299C-D274-400B-8C99-B56F779F60A1")
        // As other versions of the library made it: what they have queued is the same mutation.
        #expect(id.description == "e80622b1-bb92-88c6-9cdb-2b134ec1da26")
        #expect(id != AppSyncMutations.id(of: "9700299c-d274-400b-8c99-b56f779f60a1"))
        #expect(Array(id.description)[14] == "8" && "89ab".contains(Array(id.description)[19]))
    }

    @Test("The report of an inspection says that nothing was written, and counts the rows that cannot be read too")
    func inspected() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.db").path, .records)
            try fixture.record("Cook:1", #"{"__typename":"Cook","id":"1"}"#)
            try fixture.record("list", "[]")
            fixture.close()
            let report = try await source(fixture.path).inspect()
            #expect(report.isDryRun)
            #expect(report.records == 2 && report.omitted(.record, .unreadable) == 1)
        }
    }
}
