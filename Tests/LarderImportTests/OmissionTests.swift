import Foundation
import Larder
import LarderImport
import LarderTestSupport
import Testing

@Suite("What an import leaves out, and the reasons that it gives", .timeLimit(.minutes(10)))
struct OmissionTests {
    /// The examples that the report gives for a reason.
    private func examples(_ report: ImportReport, _ reason: Omission.Reason) -> [String] {
        report.omissions.first { $0.reason == reason }?.examples ?? []
    }

    @Test("A row without a key is unreadable, whatever object its record says, and is named by its number")
    func rowWithoutKey() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .recordsOfApollo2)
            try fixture.insert(
                "INSERT INTO records (key, record) VALUES (?, ?)",
                [nil, #"{"__typename":"Cook","id":"a","name":"Ada"}"#])
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.objects == .init() && report.omitted(.record, .unreadable) == 1)
            #expect(examples(report, .unreadable) == ["row 1"])
        }
    }

    @Test("A field that the store refuses is named with the reason")
    func refusedField() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"count":"three"}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            let example = try #require(examples(report, .refused).first)
            let start = "QUERY_ROOT.count: "
            #expect(example.hasPrefix(start) && example.count > start.count)
        }
    }

    @Test("A mutation that the schema does not allow is named with what does not fit")
    func refusedMutation() async throws {
        try await withRecipeBox { app, folder in
            let path = folder.appending(path: "offlineMutations.db").path
            let fixture = try ForeignFixture(path, .mutations)
            try fixture.mutation("A", #"{"query":"mutation Burn { burn { id } }"}"#)
            fixture.close()
            let report = try await source(path, .appSync) { $0.takesMutations = true }.run(into: app)
            let example = try #require(examples(report, .refused).first)
            #expect(example.hasPrefix("A (Burn): ") && example.contains("burn"))
        }
    }
}
