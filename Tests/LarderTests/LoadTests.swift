import Foundation
import LarderTestSupport
import Testing

/// In processes of their own, whose peak of memory is theirs. The limits of time end what would not end.
@Suite("Large things", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), .timeLimit(.minutes(10)))
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

    @Test("Half a million of the smallest objects take at most 32 bytes of memory for each byte of their JSON")
    func parts() async throws {
        let (said, megabytes) = try await load("parts")
        #expect(said.first == "elements 524287")
        // Of 4 MiB: eight bytes of text become 44 of parsed values, 48 of a staged record and 60 of what is stored.
        #expect(megabytes < 4 * 32)
    }

    @Test("Four million numbers in a list take at most 17 bytes of memory for each byte of their JSON")
    func numbers() async throws {
        let (said, megabytes) = try await load("numbers")
        #expect(said.first == "elements 4194299")
        #expect(megabytes < 8 * 17)
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

    @Test("Files over 2 GiB overflow nothing: a sparse one of 6 GiB is uploaded, in memory that does not depend on it")
    func upload() async throws {
        let (said, megabytes) = try await load("upload")
        #expect(said.prefix(2) == ["moved \(6 << 30)", "same true"])
        #expect(megabytes < 64)
    }

    @Test(
        "An object of 6 GiB is downloaded, in memory that does not depend on it",
        .enabled(if: canMount && Self.freeMemory > 12 << 30, "needs root, and 12 GiB of memory for a volume to keep it")
    )
    func download() async throws {
        try await withSmallVolume(7 << 30) { volume in
            let said = try await ChildProgram.run(volume.appending(path: "store"), "load", "download")
            #expect(said.prefix(2) == ["moved \(6 << 30)", "same true"])
            let peak = said.first { $0.hasPrefix("peak ") }.flatMap { Int($0.dropFirst("peak ".count)) }
            #expect(try #require(peak) < 64)
        }
    }

    /// In bytes; 0 where that cannot be told.
    private static let freeMemory: Int = {
        let lines = (try? String(contentsOfFile: "/proc/meminfo", encoding: .utf8))?.split(separator: "\n") ?? []
        let line = lines.first { $0.hasPrefix("MemAvailable:") }
        return line?.split(separator: " ").compactMap { Int($0) }.first.map { $0 << 10 } ?? 0
    }()
}
