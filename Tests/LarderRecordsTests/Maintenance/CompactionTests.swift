import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Compaction", .timeLimit(.minutes(10)))
struct CompactionTests {
    @Test("A compacted cache gives the same answers from fewer bytes")
    func sameAnswers() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill(200)
            try await library.fill(200, revision: 1)
            let before = try library.cache.read(operation)
            let report = try await library.cache.compact()
            let after = try library.cache.read(operation)
            #expect(after.response == before.response)
            #expect(after.response.isComplete)
            #expect(report.bytesAfter < report.bytesBefore)
            #expect(report.generation == 2)
            #expect(after.dependencies.generation == before.dependencies.generation)
            #expect(after.dependencies.reads == before.dependencies.reads)
            #expect(after.dependencies.fieldSets == before.dependencies.fieldSets)
            try expectSound(library.cache)
            try library.cache.close()
            let again = try LibraryCache(folder)
            #expect(try again.cache.read(operation).response == before.response)
            try expectSound(again.cache)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["2"])
        }
    }

    @Test("After compaction the same response changes nothing, and another one what it changes")
    func writesAfterwards() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill()
            try await library.cache.compact()
            #expect(try await library.write(LibraryCache.books(0..<40), operation).changes.isEmpty)
            let commit = try await library.write(LibraryCache.books(0..<40, revision: 2), operation)
            #expect(!commit.changes.isEmpty)
            try expectSound(library.cache)
            try await library.cache.compact()
            try expectSound(library.cache)
            let text = try library.cache.read(operation).response["books"]?[6]?["text"]?.string
            #expect(text?.hasPrefix("Line 6 of revision 2.") == true)
            #expect(try library.cache.inspect.statistics().generation == 3)
        }
    }

    @Test("A long custom scalar whose members come in another order is the same, after compaction as before")
    func reorderedScalar() async throws {
        try await withSampleCache("type Query { meta: JSON } scalar JSON") { sample in
            let text = String(repeating: "long ", count: 100)
            try await sample.write("{ meta }", data: #"{"meta":{"a":1,"b":"\#(text)"}}"#)
            for isCompacted in [false, true] {
                if isCompacted { _ = try await sample.cache.compact() }
                let again = try await sample.write("{ meta }", data: #"{"meta":{ "b":"\#(text)", "a":1 }}"#)
                #expect(again.changes.isEmpty)
            }
            let other = try await sample.write("{ meta }", data: #"{"meta":{"a":2,"b":"\#(text)"}}"#)
            #expect(!other.changes.isEmpty)
        }
    }

    @Test("A number of very many digits is the same number after compaction")
    func longNumber() async throws {
        try await withSampleCache("type Query { meta: JSON } scalar JSON") { sample in
            let data = "{\"meta\":\(String(repeating: "7", count: 2 * RecordFormat.farThreshold))}"
            try await sample.write("{ meta }", data: data)
            _ = try await sample.cache.compact()
            #expect(try sample.json("{ meta }") == data)
        }
    }

    private func expectWholeAfterCompaction(
        _ sample: SampleCache, _ text: String, data: String, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let operation = try sample.operation(text)
        let parsed = try ParsedResponse.parse(Array("{\"data\":\(data)}".utf8), along: operation.layout)
        _ = try await sample.cache.write(parsed, of: operation)
        let before = try sample.cache.read(operation).response
        try await sample.cache.compact()
        #expect(try sample.cache.read(operation).response == before, sourceLocation: sourceLocation)
        #expect(try sample.cache.check(.everything).problems == [], sourceLocation: sourceLocation)
    }

    @Test("A cache whose records and keys take more than one transaction to copy is whole after compaction")
    func manyBytes() async throws {
        try await withSampleCache("type Query { notes: [Note!]! } type Note { id: ID! text: String! }") { sample in
            let (id, text) = (String(repeating: "i", count: 180), String(repeating: "t", count: 200))
            // Transactions end after 4 MiB: these are more bytes of keys, and more again of records.
            let notes = (0..<26_000).map { #"{"__typename":"Note","id":"\#(id)\#($0)","text":"\#(text)"}"# }
            try await expectWholeAfterCompaction(
                sample, "{ notes { id text } }", data: #"{"notes":[\#(notes.joined(separator: ","))]}"#)
        }
    }

    @Test("A cache whose split records take more than one transaction to copy is whole after compaction")
    func manySplitFields() async throws {
        let names = (0..<70).map { "f\($0)" }
        let fields = names.map { "\($0): String" }.joined(separator: " ")
        try await withSampleCache("type Query { wide: [Wide!]! } type Wide { id: ID! \(fields) }") { sample in
            // Transactions end after 4 MiB: these are more bytes of fields.
            let text = String(repeating: "t", count: 80)
            let values = names.map { #""\#($0)":"\#(text)""# }.joined(separator: ",")
            let objects = (0..<900).map { #"{"__typename":"Wide","id":"\#($0)",\#(values)}"# }
            try await expectWholeAfterCompaction(
                sample, "{ wide { id \(names.joined(separator: " ")) } }",
                data: #"{"wide":[\#(objects.joined(separator: ","))]}"#)
        }
    }

    @Test("A cache whose names of fields take more than one transaction to copy is whole after compaction")
    func manyNames() async throws {
        try await withSampleCache("type Query { found(by: String, number: Int): Int }") { sample in
            // Transactions end after 4 MiB: these are more bytes of names, each of which has the text in it.
            let variables = ["text": Value.string(String(repeating: "t", count: 1 << 16))]
            let fields = (0..<80).map { "f\($0): found(by: $text, number: \($0))" }.joined(separator: " ")
            let query = "query Found($text: String) { \(fields) }"
            let values = (0..<80).map { #""f\#($0)":\#($0)"# }.joined(separator: ",")
            let data = "{\(values)}"
            try await sample.write(query, variables, data: data)
            try await sample.cache.compact()
            #expect(try sample.json(query, variables) == data)
            #expect(try sample.cache.check(.everything).problems == [])
        }
    }

    @Test("Texts that lie in several segments are read in one answer")
    func segments() async throws {
        try await withSampleCache("type Query { notes: [Note!]! } type Note { id: ID! text: String! }") { sample in
            let texts = (0..<4).map { String(repeating: "\($0)", count: 700_000) }
            let notes = texts.enumerated().map { #"{"__typename":"Note","id":"\#($0)","text":"\#($1)"}"# }
            try await sample.write(
                "{ notes { __typename id text } }", data: #"{"notes":[\#(notes.joined(separator: ","))]}"#)
            _ = try await sample.cache.compact()
            let response = try sample.cache.read(sample.operation("{ notes { text } }")).response
            for (index, text) in texts.enumerated() {
                #expect(response["notes"]?[index]?["text"]?.string == text, "text \(index)")
            }
        }
    }

    @Test("A segment of texts is full at 1 MiB, its checksum included")
    func fullSegment() {
        var draft = TextHeapDraft(earlier: [:])
        let places = [UInt8](repeating: 1, count: 1 << 10).withUnsafeBytes { text in
            (0...1024).map { _ in draft.append(text) }
        }
        #expect(places[1023] == TextPlace(segment: 0, offset: 4 + 1023 << 10, count: 1 << 10))
        #expect(places[1024] == TextPlace(segment: 1, offset: 4, count: 1 << 10))
    }

    @Test("A position from before compaction stays right: the last one says nothing, an older one everything")
    func positions() async throws {
        try await withLibraryCache { library in
            let older = try await library.write(LibraryCache.books(0..<3), library.operation()).position
            let last = try await library.write(LibraryCache.books(0..<4), library.operation()).position
            try await library.cache.compact()
            #expect(try library.cache.position == last)
            #expect(try library.cache.changes(since: last) == .changes([]))
            #expect(try library.cache.changes(since: older) == .everything)
            let next = try await library.write(LibraryCache.books(0..<5), library.operation())
            #expect(try library.cache.changes(since: last) == .changes([(next.position.number, stored(next.changes))]))
        }
    }

    private func stored(_ set: ChangeSet) throws -> ChangeSet {
        try set.encoded.withUnsafeBytes { try ChangeSet(encoded: $0) }
    }

    @Test("A cache that is open to be read only is not compacted, and nothing is made in its folder")
    func readOnly() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(3)
            try library.cache.close()
            var options = RecordCache.Options()
            options.isReadOnly = true
            let reader = try LibraryCache(folder, options: options)
            func names() throws -> Set<String> { Set(try FileManager.default.subpathsOfDirectory(atPath: folder.path)) }
            let before = try names()
            let error = await #expect(throws: RecordError.self) { try await reader.cache.compact() }
            #expect(error?.code == .notWritable)
            #expect(try names() == before)
            try reader.cache.close()
        }
    }

    @Test("A cleared cache is empty, starts an epoch, and tells its observers")
    func clear() async throws {
        try await withLibraryCache { library in
            let operation = try await library.fill()
            let before = try library.cache.read(operation)
            let position = try library.cache.position
            let heard = Mutex<[Commit]>([])
            library.cache.observe { commit in heard.withLock { $0.append(commit) } }
            let commit = try await library.cache.clear()
            #expect(commit.changes.isEverything)
            #expect(commit.generation != before.dependencies.generation)
            #expect(commit.position.epoch != position.epoch)
            #expect(heard.withLock { $0.map(\.changes.isEverything) } == [true])
            #expect(heard.withLock { $0.first?.position } == commit.position)
            #expect(try library.cache.position == commit.position)
            #expect(try library.cache.changes(since: position) == .everything)
            #expect(try library.cache.read(operation).response.isComplete == false)
            #expect(try library.cache.inspect.keys() == [])
            try await library.fill(3)
            #expect(try library.cache.read(operation).response["books"]?.count == 3)
        }
    }

    @Test("A crash at any step leaves the old cache or the new one, whole", arguments: RecordCache.KillPoint.allCases)
    func crash(at step: RecordCache.KillPoint) async throws {
        try await withTemporaryFolder { base in
            let (folder, copy) = (base.appending(path: "cache"), base.appending(path: "crashed"))
            let library = try LibraryCache(folder)
            let operation = try await library.fill()
            let before = try library.cache.read(operation).response
            _ = try await library.cache.compact { reached in
                guard reached == step, !FileManager.default.fileExists(atPath: copy.path) else { return }
                try crashCopy(of: folder, to: copy)
            }
            let crashed = try LibraryCache(copy)
            #expect(try crashed.cache.read(operation).response == before)
            try expectSound(crashed.cache)
            let report = try await crashed.cache.compact()
            #expect(report.generation == ([.superseded, .switched].contains(step) ? 3 : 2))
            #expect(try crashed.cache.read(operation).response == before)
            try expectSound(crashed.cache)
            try crashed.cache.close()
            #expect(try FileManager.default.contentsOfDirectory(atPath: copy.path).count == 1)
        }
    }

    @Test("A clear that fails at any step leaves a cache that works", arguments: RecordCache.KillPoint.ofClearing)
    func failure(at step: RecordCache.KillPoint) async throws {
        struct Stop: Error {}
        try await withLibraryCache { library in
            let operation = try await library.fill()
            await #expect(throws: RecordError.self) {
                try await library.cache.clear { reached in if reached == step { throw Stop() } }
            }
            let isCleared = step == .superseded || step == .switched
            #expect(try library.cache.read(operation).response.isComplete == !isCleared)
            try await library.fill(5)
            #expect(try library.cache.read(operation).response["books"]?.count == 5)
        }
    }

    @Test(
        "A compaction removes the folder of a generation that a crash has left",
        arguments: ["1.removed-7", "2.draft-7"])
    func leftovers(name: String) async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill(3)
            let left = folder.appending(path: name)
            try FileManager.default.createDirectory(at: left, withIntermediateDirectories: true)
            try Data([1]).write(to: left.appending(path: "data.mdb"))
            try await library.cache.compact()
            #expect(!FileManager.default.fileExists(atPath: left.path))
            #expect(try library.cache.read(operation).response["books"]?.count == 3)
            try expectSound(library.cache)
        }
    }

    /// The calls of the file system while a cache is compacted and closed: generation 1 goes, and 2 comes.
    private func callsOfCompaction() async throws -> [FileCall] {
        try await withTemporaryFolder { folder in
            let calls = Mutex<[FileCall]>([])
            var options = RecordCache.Options.patient
            options.files = FileSystem { call in
                calls.withLock { $0.append(call) }
                return nil
            }
            let library = try LibraryCache(folder, options: options)
            try await library.fill(3)
            let report = try await library.cache.compact()
            #expect(report.generation == 2)
            try library.cache.close()
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["2"])
            return calls.withLock { $0 }
        }
    }

    @Test("A compaction syncs the names of the new generation's files before that has its own name")
    func namesBeforeTheirFolder() async throws {
        let calls = try await callsOfCompaction()
        let named = try #require(
            calls.firstIndex { call in
                call.kind == .rename && URL(filePath: call.path).lastPathComponent.hasPrefix("2.draft-")
            })
        let draft = calls[named].path
        let last = try #require(calls[..<named].lastIndex { $0.kind == .rename && $0.path.hasPrefix(draft + "/") })
        #expect(calls[last..<named].contains { $0.kind == .synchronizeFolder && $0.path == draft })
    }

    @Test("The old generation loses its name before its file when a compaction removes it")
    func nameBeforeFile() async throws {
        let calls = try await callsOfCompaction()
        let removed = calls.filter { $0.kind == .remove && $0.path.hasSuffix("/data.mdb") }.map(\.path)
        #expect(calls.contains { $0.kind == .rename && $0.path.hasSuffix("/1") })
        #expect(removed.contains { $0.contains("/1.removed-") })
        #expect(!removed.contains { $0.hasSuffix("/1/data.mdb") })
    }

    @Test("Opening read-only removes nothing: a generation that was left stays")
    func readOnlyLeavesLeftovers() async throws {
        struct Stop: Error {}
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            let operation = try await library.fill(5)
            await #expect(throws: RecordError.self) {
                try await library.cache.compact { reached in if reached == .superseded { throw Stop() } }
            }
            try library.cache.close()
            func generations() throws -> [String] {
                try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
            }
            #expect(try generations() == ["1", "2"])
            var options = RecordCache.Options()
            options.isReadOnly = true
            let reader = try LibraryCache(folder, options: options)
            #expect(try reader.cache.read(operation).response["books"]?.count == 5)
            let refusal = #expect(throws: LMDBError.self) {
                _ = try reader.cache.generations.current.environment.beginWrite(deadline: .now)
            }
            #expect(refusal?.code == .readOnly)
            #expect(try generations() == ["1", "2"])
            try reader.cache.close()
            let writer = try LibraryCache(folder)
            #expect(try generations() == ["2"])
            try expectSound(writer.cache)
        }
    }

    @Test("A reader that finds the old generation superseded first, and closes it, disturbs no other reader")
    func readerIsQuicker() async throws {
        try await withLibraryCache { library in
            let operation = try await library.fill()
            let before = try library.cache.read(operation).response
            let report = try await library.cache.compact { (reached) throws in
                guard reached == .superseded else { return }
                #expect(try library.cache.read(operation).response == before)
            }
            #expect(report.generation == 2)
            let commit = try await library.cache.clear { (reached) throws in
                guard reached == .superseded else { return }
                #expect(try library.cache.read(operation).response.isComplete == false)
            }
            #expect(commit.changes.isEverything)
            #expect(try library.cache.position == commit.position)
        }
    }

    @Test("A caller that finds the cache superseded goes on until its deadline, however often that happens")
    func supersededOften() async throws {
        try await withLibraryCache { library in
            var tries = 0
            let last = try library.cache.generations.retrying(to: "try it", until: .now + .seconds(300)) { _ -> Int? in
                tries += 1
                return tries == 40 ? tries : nil
            }
            #expect(last == 40)
            tries = 0
            let error = #expect(throws: RecordError.self) {
                try library.cache.generations.retrying(to: "try it", until: .now) { _ -> Int? in
                    tries += 1
                    return nil
                }
            }
            // One that found out late, or takes long, has others all the same.
            #expect(tries == 8)
            #expect(error?.code == .busy)
            #expect(error?.message.contains("on the way to try it") == true)
        }
    }

    @Test("Reads and writes go on while the cache is compacted again and again")
    func underLoad() async throws {
        try await withLibraryCache { library in
            let operation = try await library.fill(20)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { for _ in 0..<5 { try await library.cache.compact() } }
                group.addTask {
                    for revision in 1...20 {
                        let bound = try library.operation()
                        try await library.write(LibraryCache.books(0..<20, revision: revision), bound)
                    }
                }
                for _ in 0..<2 {
                    group.addTask {
                        for _ in 0..<200 {
                            let answer = try library.cache.read(operation).response
                            #expect(answer["books"]?.count == 20)
                        }
                    }
                }
                try await group.waitForAll()
            }
            let text = try library.cache.read(operation).response["books"]?[3]?["text"]?.string
            #expect(text?.hasPrefix("Line 3 of revision 20.") == true)
        }
    }

    @Test(
        "A recorded response takes no more bytes once compacted than as JSON",
        .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))
    func size() async throws {
        try await withTemporaryFolder { folder in
            let schema = try SchemaIndex(
                parsing: String(decoding: SharedData.bytes("github/schema.graphqls"), as: UTF8.self))
            let name = "IssuesAndCommentsForRepository"
            let text = try String(decoding: SharedData.bytes("github/\(name).graphql"), as: UTF8.self)
            let body = try SharedData.bytes("github/\(name).json")
            let operation = try CompiledOperation(operation: nil, in: Document(parsing: text), schema).bound()
            let cache = try RecordCache(folder: folder.path, stamp: "size")
            let parsed = try ParsedResponse.parse(body, along: operation.layout)
            _ = try await cache.write(parsed, of: operation)
            let before = try cache.read(operation).response
            let report = try await cache.compact()
            #expect(try cache.read(operation).response == before)
            // Every table ends in a page that is not full, and LMDB has pages of its own.
            let rest = sysconf(Int32(_SC_PAGESIZE)) - 4096
            #expect(report.bytesAfter <= Int64(body.count + (Tables.definitions.count + 1) * rest))
            let again = try ParsedResponse.parse(body, along: operation.layout)
            #expect(try await cache.write(again, of: operation).changes.isEmpty)
            try expectSound(cache)
        }
    }
}
