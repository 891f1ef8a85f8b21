import Foundation
import LarderTestSupport
import Testing

/// In processes of their own, whose peak of memory is theirs. The limits of time end what would not end.
@Suite("Large things", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), .timeLimit(.minutes(5)))
struct LoadTests {
    private func load(_ name: String) async throws -> (said: [String], megabytes: Int) {
        try await withTemporaryFolder { folder in
            let said = try await ChildProgram.run(folder.appending(path: "store"), "load", name)
            let peak = said.first { $0.hasPrefix("peak ") }.flatMap { Int($0.dropFirst("peak ".count)) }
            #expect(said.last == "sound")
            return (said, try #require(peak))
        }
    }

    @Test("A list of 100,000 objects takes memory in proportion to it")
    func objects() async throws {
        let (said, megabytes) = try await load("objects")
        #expect(said.first == "elements 100000")
        // About a hundred bytes of records, of an answer and of lists for each, several times over.
        #expect(megabytes < 300)
    }

    @Test("A root of 100,000 fields is written and read by field: a change of one touches few pages")
    func fields() async throws {
        let (said, megabytes) = try await load("fields")
        #expect(said.first == "title t")
        let pages = try #require(said.first { $0.hasPrefix("pages ") }.flatMap { Int($0.dropFirst("pages ".count)) })
        #expect(pages < 200)
        // Each of them under its own argument, in operations of 5,000 that are kept.
        #expect(megabytes < 1_500)
    }

    @Test("One field under 5,000 names is stored once, and answered under each")
    func aliases() async throws {
        let (said, megabytes) = try await load("aliases")
        #expect(said.first == "same true")
        #expect(megabytes < 150)
    }

    @Test("A document of a megabyte is compiled")
    func document() async throws {
        let (said, megabytes) = try await load("document")
        #expect(said.first == "elements 1")
        #expect(megabytes < 300)
    }
}
