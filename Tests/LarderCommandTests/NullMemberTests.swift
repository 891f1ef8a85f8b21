import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Members of JSON that have no value", .timeLimit(.minutes(10)))
struct NullMemberTests {
    @Test("JSON has neither a result nor a failure of a mutation that took effect and kept nothing of its answer")
    func settled() async throws {
        try await TransferFixture.run { fixture in
            let draft = MutationDraft(
                partition: "main", content: MutationContent(document: "mutation { add(title: 1) { id } }"),
                created: Date())
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.mutations.enqueue(draft)
                try await database.settle(draft.id)
            }
            let shown = try await fixture.larder("mutations", "show", draft.id.text, "--json").output
            #expect(shown.contains(#","result":null,"failure":null,"errors":[]"#), "\(shown)")
        }
    }

    @Test("JSON has neither a content type nor the size of a part of a download that has not begun")
    func notBegun() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.download()
            let shown = try await fixture.larder("transfers", "show", id.text, "--json").output
            #expect(shown.contains(#","contentType":null,"metadata":{},"partSize":null,"parts":0,"#), "\(shown)")
        }
    }

    @Test("JSON names no key of a partition that keeps no credentials")
    func noKey() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            _ = try await Store.makeStaging(at: place, schema: "type Query { n: Int }")
            let told = try await LarderProcess.run(["credentials", "--json", "--store", place.path]).output
            #expect(told.contains(#""user":null,"sealedWith":null,"credentials":[],"quarantined":[]}"#), "\(told)")
        }
    }
}
