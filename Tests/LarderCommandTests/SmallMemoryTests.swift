import Foundation
import LarderTestSupport
import Testing

#if os(Linux)
/// `ulimit -d` bounds what a process has of its own: its heap, its buffers and its threads' stacks, and LMDB's dirty
/// pages. What it maps of files is not counted.
@Suite("A store in 128 MiB of memory", .timeLimit(.minutes(10)))
struct SmallMemoryTests {
    @Test("A response of eight megabytes is stored, stored once more with other values, read, checked and collected")
    func largeResponse() async throws {
        try await withTemporaryFolder { folder in
            let schema = folder.appending(path: "schema.graphql")
            try Data(
                "type Book { id: ID! title: String! text: String! } type Query { books: [Book!]! }".utf8
            ).write(to: schema)
            let operation = folder.appending(path: "books.graphql")
            try Data("{ books { __typename id title text } }".utf8).write(to: operation)
            let common = [
                "--store", folder.appending(path: "store").path, "--schema", schema.path, "--operation", operation.path,
            ]
            for round in 0..<2 {
                let books = (0..<32_000).map { number in
                    // In no order, so that objects that follow each other lie on different pages.
                    #"{"__typename":"Book","id":"\#(String(number &* 2_654_435_761 % 4_294_967_296, radix: 36))","#
                        + #""title":"\#(round)","text":"\#(String(repeating: "x", count: 190))"}"#
                }
                let response = folder.appending(path: "response.json")
                let text = Data(#"{"data":{"books":[\#(books.joined(separator: ","))]}}"#.utf8)
                #expect(text.count > 7_900_000)
                try text.write(to: response)
                let stored = try await LarderProcess.run(
                    shell: #"ulimit -d 131072 && exec "$@""#, ["ingest"] + common + ["--response", response.path])
                #expect(stored.status == 0, "\(stored.errors.prefix(300))")
            }
            let read = try await LarderProcess.run(
                shell: #"ulimit -d 131072 && exec "$@" >/dev/null"#, ["query"] + common)
            #expect(read.status == 0, "\(read.errors.prefix(300))")
            for verb in [["check"], ["compact"], ["gc", "--write"], ["check"]] {
                let run = try await LarderProcess.run(shell: #"ulimit -d 131072 && exec "$@""#, verb + common.prefix(2))
                #expect(run.status == 0, "\(verb) \(run.errors.prefix(300))")
            }
        }
    }
}
#endif
