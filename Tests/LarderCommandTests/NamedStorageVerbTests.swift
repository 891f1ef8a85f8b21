import Foundation
import Larder
import LarderOperations
import Testing

@Suite("Storages with names from the command line", .timeLimit(.minutes(10)))
struct NamedStorageVerbTests {
    /// Queues an upload to the storage `archive`, which has failed with an upload in parts there.
    private func failed(_ fixture: TransferFixture) async throws -> UUID {
        let other = try await fixture.upload()
        let partition = try #require(try await fixture.withTable { try $0.find(other)?.partition })
        let draft = TransferDraft(
            partition: partition, kind: .upload, storage: "archive", bucket: "media", key: "k", path: "/file",
            source: .init(device: 1, inode: 2, size: 10, modified: 3), created: Date())
        try await fixture.withTable { try await $0.enqueue([draft]) }
        try await fixture.fail(fixture.begin(draft.id, upload: "a-name"))
        return draft.id
    }

    @Test("`transfers` shows the storage's name")
    func shown() async throws {
        try await TransferFixture.run { fixture in
            let id = try await failed(fixture)
            #expect(try await fixture.larder("transfers").output.contains(" archive:media/k "))
            let shown = try await fixture.larder("transfers", "show", id.text, "--json")
            #expect(shown.output.contains(#""storage":"archive","bucket":"media""#), "\(shown.output)")
        }
    }

    @Test("`transfers` says that a transfer waits because the runner lacks its storage")
    func lacking() async throws {
        try await TransferFixture.run { fixture in
            let place = ObjectLocation(bucket: "media", key: "k", region: "eu-west-1", storage: "archive")
            let id = try await fixture.upload(to: place)
            try await fixture.withTable { table in
                let partition = try #require(try table.find(id)?.partition)
                try await table.noteUnserved(in: partition, having: [nil], now: Date())
            }
            let told = try await fixture.larder("transfers")
            #expect(told.output.hasPrefix("pending \(id.text) upload "), "\(told.output)")
            #expect(told.output.contains(" transfer.noStorage: "), "\(told.output)")
        }
    }

    @Test("`transfers gc` asks no storage for the uploads of another")
    func otherStorage() async throws {
        try await TransferFixture.run { fixture in
            let id = try await failed(fixture)
            let place = ["--region", "eu-west-1", "--endpoint", "http://127.0.0.1:9"]
            func collect(_ arguments: [String]) async throws -> String {
                try await LarderProcess.run(
                    ["transfers", "gc", "--write", "--json", "--store", fixture.store] + place + arguments,
                    environment: ["AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"]
                ).output
            }
            for arguments in [[], ["--storage", "photos"]] {
                let output = try await collect(arguments)
                #expect(output.contains(#"{"transfer":"\#(id.text)","code":"noStorage""#), "\(output)")
            }
            let output = try await collect(["--storage", "archive"])
            #expect(output.contains(#"{"transfer":"\#(id.text)","code":"object.unreachable""#), "\(output)")
        }
    }

    @Test("`transfers gc` names in JSON the storage that has an upload")
    func storageInJSON() async throws {
        try await TransferFixture.run { fixture in
            let id = try await failed(fixture)
            let told = try await fixture.larder("transfers", "gc", "--json").output
            let upload = #"{"transfer":"\#(id.text)","state":"failed","storage":"archive","bucket":"media","#
            #expect(told.contains(upload), "\(told)")
        }
    }
}
