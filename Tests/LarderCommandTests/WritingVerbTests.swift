import Foundation
import LarderTestSupport
import Testing

@Suite("Verbs that write", .timeLimit(.minutes(10)))
struct WritingVerbTests {
    @Test("ingest says what it wrote, and that the same again is nothing")
    func ingests() async throws {
        try await CommandFixture.withFiles { fixture in
            let first = try await fixture.ingestList()
            #expect(first.status == 0)
            #expect(first.output.contains("5 records created, 0 changed, 0 removed; the store has "))
            let again = try await fixture.ingestList("--json")
            #expect(
                again.outputWithoutSizes == #"""
                    {"larder":1,"command":"ingest","result":{"responseBytes":\#(CommandFixture.list.utf8.count),\#
                    "objects":6,"written":{"records":{"created":0,"changed":0,"removed":0},\#
                    "bytes":{"before":0,"after":0}},"errors":[]}}

                    """#)
        }
    }

    @Test("ingest takes the response from standard input")
    func ingestsStandardInput() async throws {
        try await CommandFixture.withFiles { fixture in
            let arguments = try ["ingest", "--response", "-"] + fixture.operation("List", variables: #"{"n":2}"#)
            let outcome = try await fixture.larder(arguments, input: CommandFixture.list)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "Recipe:1\nRecipe:2\n")
        }
    }

    @Test("ingest of a response with errors alone stores nothing and tells them")
    func ingestsErrors() async throws {
        try await CommandFixture.withStore { fixture in
            let response = try fixture.write(
                #"{"errors":[{"message":"no time","extensions":{"code":"BUSY"}}]}"#, to: "errors.json")
            let outcome = try await fixture.larder(
                ["ingest", "--json", "--response", response] + fixture.operation("List", variables: #"{"n":2}"#))
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"larder.serverErrors""#))
            let error = #""errors":[{"message":"no time","errorType":"BUSY","extensions":{"code":"BUSY"}}]"#
            #expect(outcome.errors.contains(error), "\(outcome.errors)")
        }
    }

    @Test("ingest of a response with data and errors stores the data, and tells the errors")
    func ingestsDataWithErrors() async throws {
        try await CommandFixture.withFiles { fixture in
            let error = #"{"message":"no clock","path":["recipes",0,"minutes"]}"#
            let data = CommandFixture.list.dropLast().replacing(#""minutes":20"#, with: #""minutes":null"#)
            let response = try fixture.write(#"\#(data),"errors":[\#(error)]}"#, to: "partial.json")
            let outcome = try await fixture.larder(
                ["ingest", "--json", "--response", response] + fixture.operation("List", variables: #"{"n":2}"#))
            #expect(outcome.status == 0 && outcome.output.hasSuffix(#","errors":[\#(error)]}}"# + "\n"), "\(outcome)")
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "Recipe:1\nRecipe:2\n")
        }
    }

    @Test("rm evicts objects, and forgets that they ever were")
    func evicts() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder("rm", "Recipe:1", "Recipe:77", "--json")
            #expect(
                outcome.outputWithoutSizes == #"""
                    {"larder":1,"command":"rm","result":{"written":{"records":{"created":0,"changed":0,"removed":2},\#
                    "bytes":{"before":0,"after":0}}}}

                    """#)
            #expect(try await fixture.larder("ls", "--type", "Recipe", "--deleted").output == "Recipe:2\n")
        }
    }

    @Test(
        "What a verb did is told although the store cannot be closed cleanly afterwards",
        arguments: [["rm", "--type", "Recipe", "--write"], ["gc", "--max-bytes", "1000000", "--write"]])
    func uncleanClose(arguments: [String]) async throws {
        try await CommandFixture.withStore { fixture in
            // A stamp cannot take the place of a folder that holds something.
            let records = fixture.folder.appending(path: "store")
            let stamps = try FileManager.default.subpathsOfDirectory(atPath: records.path).filter {
                $0.hasSuffix("clean.stamp")
            }
            try #require(!stamps.isEmpty)
            for stamp in stamps {
                try FileManager.default.removeItem(at: records.appending(path: stamp))
                try FileManager.default.createDirectory(
                    at: records.appending(path: "\(stamp)/held"), withIntermediateDirectories: true)
            }
            let outcome = try await fixture.larder(arguments)
            #expect(outcome.status == 0)
            #expect(outcome.output.contains("removed"), "\(outcome.output)")
            #expect(outcome.errors.contains("could not be closed cleanly"), "\(outcome.errors)")
            let json = try await fixture.larder(["rm", "Author:7", "--json"])
            #expect(json.status == 0 && json.output.contains(#""result":{"written""#), "\(json.output)")
            #expect(json.errors.contains(#""warning":{"code":"#), "\(json.errors)")
        }
    }

    @Test("rm --as deleted leaves the knowledge that the object is no more")
    func deletes() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "Recipe:2\n")
            let get = try await fixture.larder("get", "Recipe:1")
            #expect(get.status == 3)
            #expect(get.errors.hasPrefix("larder: Recipe:1 is known to be no more\nlarder: hint: "))
        }
    }

    @Test("rm removes a field of the root, or of an object")
    func removesFields() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "--field", "minutes", "--of", "Recipe:1").status == 0)
            #expect(try await !fixture.larder("get", "Recipe:1").output.contains("minutes"))
            #expect(try await fixture.larder("rm", "--field", "recipes").status == 0)
            let query = try await fixture.larder(["query"] + fixture.operation("List", variables: #"{"n":2}"#))
            #expect(query.status == 3)
        }
    }

    @Test("A verb that removes much is refused without --write", arguments: [["rm", "--type", "Recipe"], ["clear"]])
    func refuses(arguments: [String]) async throws {
        try await CommandFixture.withStore { fixture in
            let before = try fixture.snapshot()
            let refused = try await fixture.larder(arguments + ["--json"])
            #expect(refused.status == 4)
            #expect(refused.errors.contains(#""code":"command.notConfirmed""#))
            #expect(try fixture.snapshot() == before)
            #expect(try await fixture.larder(arguments + ["--write"]).status == 0)
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "")
        }
    }

    @Test("compact keeps what is known")
    func compacts() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder("compact", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.output.hasPrefix(#"{"larder":1,"command":"compact","result":{"written":{"records":"#))
            let query = try await fixture.larder(["query"] + fixture.operation("List", variables: #"{"n":2}"#))
            #expect(query.output == CommandFixture.list + "\n")
            #expect(try await fixture.larder("check").status == 0)
        }
    }

    @Test("rm of a whole field key removes what was fetched with these arguments, and with no others")
    func removesFieldKey() async throws {
        try await CommandFixture.withStore { fixture in
            let one = try fixture.operation("List", variables: #"{"n":1}"#)
            let ingested = try await fixture.larder(["ingest", "--response", fixture.path("list.json")] + one)
            #expect(ingested.status == 0, "\(ingested.errors)")
            #expect(try await fixture.larder("rm", "--field", #"recipes({"first":1})"#).status == 0)
            #expect(try await fixture.larder(["query"] + one).status == 3)
            #expect(
                try await fixture.larder(["query"] + fixture.operation("List", variables: #"{"n":2}"#)).status == 0)
        }
    }

    @Test("gc lets go of what is older than --max-age, but of what is pinned, and says how much that is")
    func collects() async throws {
        try await CommandFixture.withStore { fixture in
            let one = try fixture.operation("One", variables: #"{"id":"1"}"#)
            #expect(try await fixture.larder(["pin", "one"] + one).status == 0)
            let schema = ["--schema", fixture.path("schema.graphqls")]
            let young = try await fixture.larder(["gc", "--max-age", "3600", "--write"] + schema)
            #expect(young.errors.contains("evicted 0 objects and 0 fields of the root"), "\(young.errors)")
            // Ages are whole seconds: what came in this second is not older.
            try await Task.sleep(for: .milliseconds(1_100))
            let old = try await fixture.larder(["gc", "--max-age", "0", "--write"] + schema)
            #expect(old.errors.contains("evicted 1 object and 1 field of the root, "), "\(old.errors)")
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "Recipe:1\n")
            #expect(try await fixture.larder(["query"] + one).status == 0)
        }
    }

    @Test("pin of a name that is taken pins the other operation instead, and info tells which it is")
    func pinsAnother() async throws {
        try await CommandFixture.withStore { fixture in
            for (name, variables) in [("List", #"{"n":2}"#), ("One", #"{"id":"1"}"#)] {
                let pinned = try await fixture.larder(["pin", "shown"] + fixture.operation(name, variables: variables))
                #expect(pinned.output == "pinned shown\n", "\(pinned.errors)")
                let pins = try await fixture.larder("info").output.split(separator: "\n").filter {
                    $0.hasPrefix("pin ")
                }
                #expect(pins == ["pin         shown: \(name)"])
            }
        }
    }

    @Test("unpin of a name under which nothing is pinned ends with 3")
    func unpinsNothing() async throws {
        try await CommandFixture.withStore { fixture in
            let pin = try ["pin", "shown"] + fixture.operation("List", variables: #"{"n":2}"#)
            #expect(try await fixture.larder(pin).status == 0)
            let other = try await fixture.larder("unpin", "show", "--json")
            #expect(other.status == 3 && other.output.isEmpty)
            #expect(other.errors.contains(#""code":"command.unknownPin""#), "\(other.errors)")
            let done = try await fixture.larder("unpin", "shown")
            #expect(done.status == 0 && done.output == "unpinned shown\n", "\(done.errors)")
            #expect(try await fixture.larder("unpin", "shown").status == 3)
        }
    }

    @Test("Verbs that remove and compact make no store", arguments: ["rm x", "compact", "clear --write"])
    func makesNoStore(command: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let before = try fixture.snapshot()
            #expect(try await fixture.larder(command.split(separator: " ").map(String.init)).status == 1)
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("A folder that holds something else is not made a store")
    func refusesForeignFolder() async throws {
        try await CommandFixture.withFiles { fixture in
            let before = try fixture.snapshot()
            let outcome = try await LarderProcess.run(
                ["ingest", "--response", fixture.path("list.json"), "--store", fixture.folder.path, "--json"]
                    + fixture.operation("List"))
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"command.notAStore""#), "\(outcome.errors)")
            #expect(outcome.errors.contains("holds something else than a store"))
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("Schemas of several files are one")
    func joinsSchemas() async throws {
        try await CommandFixture.withFiles { fixture in
            let author = "type Author { id: ID! name: String! }"
            try fixture.write(CommandFixture.schema.replacing(author, with: ""), to: "schema.graphqls")
            let outcome = try await fixture.ingestList("--schema", fixture.write(author, to: "author.graphqls"))
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.larder("ls", "--type", "Author").output == "Author:7\n")
        }
    }

    @Test("Objects of a type are known to be no more where they were removed as deleted")
    func deletesType() async throws {
        try await CommandFixture.withStore { fixture in
            let removed = try await fixture.larder("rm", "--type", "Recipe", "--as", "deleted", "--write")
            #expect(removed.status == 0, "\(removed.errors)")
            let left = try await fixture.larder("ls", "--type", "Recipe", "--deleted")
            #expect(left.output == "Recipe:1\nRecipe:2\n")
        }
    }

    @Test("gc says that nothing was removed where something would be, and where nothing would be it says nothing")
    func countsGarbage() async throws {
        try await CommandFixture.withStore { fixture in
            let collect = ["gc", "--schema", fixture.path("schema.graphqls")]
            let none = try await fixture.larder(collect)
            #expect(none.output.hasPrefix("garbage: 0 objects, ") && none.errors == "", "\(none)")
            #expect(try await fixture.larder("rm", "--field", "recipes").status == 0)
            let some = try await fixture.larder(collect)
            #expect(some.output.hasPrefix("garbage: 3 objects, "), "\(some)")
            #expect(some.errors == "larder: nothing was removed; --write does it\n")
        }
    }

    @Test("clear says how many records it has removed")
    func clears() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder("clear", "--write")
            #expect(outcome.output.hasPrefix("0 records created, 0 changed, 5 removed; "), "\(outcome)")
        }
    }

    @Test("A verb that writes tells how many bytes the data files had before it, and have after it")
    func tellsBytes() async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.ingestList("--json")
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            let size = try Data(contentsOf: file).count
            #expect(size > 0 && outcome.output.contains(#""bytes":{"before":0,"after":\#(size)}"#), "\(outcome)")
        }
    }

    @Test("gc says in JSON whether it has removed the garbage, and how many bytes the garbage has")
    func countsBytesOfGarbage() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "--field", "recipes").status == 0)
            let collect = ["gc", "--json", "--schema", fixture.path("schema.graphqls")]
            for (option, isWritten) in [([], false), (["--write"], true)] as [([String], Bool)] {
                let told = try await fixture.larder(collect + option).output
                let counts = /"isWritten":(true|false),"objects":3,"parts":\d+,"keys":\d+,"bytes":[1-9]\d*,/
                #expect(told.firstMatch(of: counts).map { String($0.1) } == "\(isWritten)", "\(told)")
            }
        }
    }

    @Test("pin and unpin say in JSON whether the name is pinned afterwards")
    func tellsPin() async throws {
        try await CommandFixture.withStore { fixture in
            let pin = try ["pin", "shown", "--json"] + fixture.operation("One", variables: #"{"id":"1"}"#)
            let pinned = try await fixture.larder(pin)
            #expect(pinned.output.hasSuffix(#""result":{"name":"shown","isPinned":true}}"# + "\n"), "\(pinned)")
            let unpinned = try await fixture.larder("unpin", "shown", "--json")
            #expect(unpinned.output.hasSuffix(#""result":{"name":"shown","isPinned":false}}"# + "\n"), "\(unpinned)")
        }
    }

    @Test("pin and run make a store in a folder that is empty", arguments: ["pin", "run"])
    func makesStore(verb: String) async throws {
        try await CommandFixture.withFiles { fixture in
            try FileManager.default.createDirectory(atPath: fixture.store, withIntermediateDirectories: true)
            let more =
                try verb == "pin"
                ? ["shown"] + fixture.operation("List", variables: #"{"n":2}"#)
                : ["--until-idle", "--endpoint", "http://127.0.0.1:1/", "--schema", fixture.path("schema.graphqls")]
            let outcome = try await fixture.larder([verb] + more)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.larder("ls").status == 0)
        }
    }

    @Test("compact gives free space back, and says how many bytes the store has and had before")
    func compactsToLess() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: String(repeating: "x", count: 1 << 20))
            #expect(try await fixture.larder("rm", "Recipe:1").status == 0)
            let output = try await fixture.larder("compact").output
            let told = try #require(output.wholeMatch(of: /the store has (\d+) bytes \((\d+) before\)\n/), "\(output)")
            let (after, before) = (try #require(Int(told.1)), try #require(Int(told.2)))
            #expect(before - after > 1 << 19, "\(output)")
        }
    }

    @Test("rm removes each of the objects that it names")
    func removesSeveral() async throws {
        try await CommandFixture.withStore { (fixture) async throws in
            #expect(try await fixture.larder("rm", "Recipe:1", "Recipe:2").status == 0)
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "")
        }
    }

    @Test("gc tells in JSON the counts that it tells in words")
    func countsAsInWords() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "--field", "recipes").status == 0)
            let collect = ["gc", "--schema", fixture.path("schema.graphqls")]
            let words = try await fixture.larder(collect).output
            let counts = words.firstMatch(
                of: /: 3 objects, ([1-9]\d*) parts?, ([1-9]\d*) keys?, \d+ bytes?; kept: ([1-9]\d*) records?\n/)
            let (_, parts, keys, kept) = try #require(counts, "\(words)").output
            let json = try await fixture.larder(collect + ["--json"]).output
            #expect(json.contains(#""objects":3,"parts":\#(parts),"keys":\#(keys),"#), "\(json)")
            #expect(json.contains(#","kept":\#(kept),"#), "\(json)")
        }
    }

    @Test("gc tells in JSON how many bytes would be evicted, as in words")
    func countsEvictedBytes() async throws {
        try await CommandFixture.withStore { fixture in
            // Ages are whole seconds: what came in this second is not older.
            try await Task.sleep(for: .milliseconds(1_100))
            let collect = ["gc", "--max-age", "0", "--schema", fixture.path("schema.graphqls")]
            let words = try await fixture.larder(collect).errors
            let told = words.firstMatch(of: /fields? of the root, ([1-9]\d*) bytes; in use/)
            let bytes = try #require(told.map { String($0.1) }, "\(words)")
            let json = try await fixture.larder(collect + ["--json"]).output
            #expect(json.contains(#","bytes":\#(bytes),"bytesInUse":"#), "\(json)")
        }
    }

    @Test("gc --write counts the garbage that an eviction has left among the garbage that went")
    func countsGarbageOfEviction() async throws {
        try await CommandFixture.withStore { fixture in
            // Ages are whole seconds: what came in this second is not older.
            try await Task.sleep(for: .milliseconds(1_100))
            let collect = ["gc", "--max-age", "0", "--write", "--json", "--schema", fixture.path("schema.graphqls")]
            let told = try await fixture.larder(collect).output
            #expect(told.contains(/"isWritten":true,"objects":\d+,"parts":\d+,"keys":[1-9]\d*,/), "\(told)")
        }
    }

    @Test("gc --write tells how many bytes are in use once the garbage is gone")
    func tellsBytesInUse() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: String(repeating: "x", count: 1 << 20))
            for field in ["recipes", "recipe"] {
                #expect(try await fixture.larder("rm", "--field", field).status == 0)
            }
            func bytesInUse(_ more: [String]) async throws -> Int {
                let collect = ["gc", "--json", "--schema", fixture.path("schema.graphqls")]
                let told = try await fixture.larder(collect + more).output
                return try #require(told.firstMatch(of: /"bytesInUse":(\d+)/).flatMap { Int($0.1) }, "\(told)")
            }
            #expect(try await bytesInUse([]) > 1 << 20)
            #expect(try await bytesInUse(["--write"]) < 1 << 20)
        }
    }

    /// Makes a new environment the store's current one.
    private func enterStaging(_ fixture: CommandFixture) async throws {
        for arguments in [["add", "staging", "--url", "https://staging.example/"], ["use", "staging"]] {
            let changed = try await LarderProcess.run(
                program: "larder-migrate", ["env"] + arguments + ["--store", fixture.store])
            try #require(changed.status == 0, "\(changed.errors)")
        }
    }

    @Test("pin, info and unpin work on the pins of the current partition")
    func pinsOfPartition() async throws {
        try await CommandFixture.withStore { fixture in
            try await enterStaging(fixture)
            let one = try fixture.operation("One", variables: #"{"id":"1"}"#)
            let pinned = try await fixture.larder(["pin", "shown"] + one)
            #expect(pinned.status == 0, "\(pinned.errors)")
            let info = try await fixture.larder("info").output
            #expect(info.contains("\npin         shown: One\n"), "\(info)")
            let other = try await fixture.larder("info", "--partition", "main").output
            #expect(other.hasPrefix("store ") && !other.contains("\npin "), "\(other)")
            let unpinned = try await fixture.larder("unpin", "shown")
            #expect(unpinned.output == "unpinned shown\n", "\(unpinned.errors)")
        }
    }

    @Test("clear is refused for unsent mutations of the partition that it clears, and for those of no other")
    func clearsBesideUnsent() async throws {
        try await CommandFixture.withFiles { fixture in
            try fixture.write(CommandFixture.schema + " type Mutation { rename: Recipe }", to: "schema.graphqls")
            #expect(try await fixture.ingestList().status == 0)
            let rename = try fixture.write("mutation { rename { id } }", to: "rename.graphql")
            #expect(try await fixture.larder("enqueue", "--operation", rename).status == 0)
            try await enterStaging(fixture)
            #expect(try await fixture.ingestList().status == 0)
            let cleared = try await fixture.larder("clear", "--write")
            #expect(cleared.status == 0, "\(cleared.errors)")
            #expect(try await fixture.larder("clear", "--write", "--partition", "main").status == 4)
        }
    }

    @Test("info names no operation of a pin whose document names none")
    func pinsWithoutName() async throws {
        try await CommandFixture.withStore { fixture in
            let titles = try fixture.write("{ recipes(first: 2) { id title } }", to: "titles.graphql")
            let pinned = try await fixture.larder("pin", "shown", "--operation", titles)
            #expect(pinned.status == 0, "\(pinned.errors)")
            let info = try await fixture.larder("info", "--json").output
            #expect(info.contains(#","operation":null,"variables":"#), "\(info)")
        }
    }

    @Test("A verb that writes tells the bytes of the partition in which it writes, and of no other")
    func tellsBytesOfPartition() async throws {
        try await CommandFixture.withStore { fixture in
            try await enterStaging(fixture)
            let written = try await fixture.ingestList("--json")
            #expect(written.output.contains(/"bytes":\{"before":0,"after":[1-9]\d*\}/), "\(written)")
        }
    }

    @Test("ingest writes into the partition that is named, though another is the current one")
    func ingestsElsewhere() async throws {
        try await CommandFixture.withStore { fixture in
            try await enterStaging(fixture)
            let ingested = try await fixture.ingestList("--partition", "main")
            #expect(ingested.status == 0, "\(ingested.errors)")
            #expect(try await fixture.larder("ls").status == 3)
        }
    }

    @Test("A verb that writes counts in JSON the records that it created apart from those that it changed")
    func countsWritten() async throws {
        try await CommandFixture.withFiles { fixture in
            let first = try await fixture.ingestList("--json").output
            #expect(first.contains(#""records":{"created":5,"changed":0,"removed":0}"#), "\(first)")
            let response = CommandFixture.list.replacing("Soup", with: "Stew")
            let again = try await fixture.larder(
                ["ingest", "--json", "--response", fixture.write(response, to: "stew.json")]
                    + fixture.operation("List", variables: #"{"n":2}"#)
            ).output
            #expect(again.contains(#""records":{"created":0,"changed":1,"removed":0}"#), "\(again)")
        }
    }

    @Test("run with --max-age lets go of what is older, and of nothing that is younger")
    func runsWithAge() async throws {
        try await CommandFixture.withStore { fixture in
            let run = [
                "run", "--until-idle", "--endpoint", "http://127.0.0.1:1/", "--schema", fixture.path("schema.graphqls"),
            ]
            let query = try ["query"] + fixture.operation("List", variables: #"{"n":2}"#)
            #expect(try await fixture.larder(run + ["--max-age", "3600"]).status == 0)
            #expect(try await fixture.larder(query).status == 0)
            // Ages are whole seconds: what came in this second is not older.
            try await Task.sleep(for: .milliseconds(1_100))
            #expect(try await fixture.larder(run + ["--max-age", "0"]).status == 0)
            #expect(try await fixture.larder(query).status == 3)
        }
    }
}
