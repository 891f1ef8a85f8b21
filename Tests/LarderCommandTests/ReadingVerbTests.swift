import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Verbs that read", .timeLimit(.minutes(10)))
struct ReadingVerbTests {
    @Test("ls lists keys in order, by type, by prefix and up to a limit")
    func lists() async throws {
        try await CommandFixture.withStore { fixture in
            let all = try await fixture.larder("ls")
            #expect(all.output == "Author:7\nQUERY_ROOT\nRecipe:1\nRecipe:2\n")
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == "Recipe:1\nRecipe:2\n")
            #expect(try await fixture.larder("ls", "--prefix", "Auth").output == "Author:7\n")
            #expect(try await fixture.larder("ls", "--type", "Unheard").output == "")
            #expect(
                try await fixture.larder("ls", "--limit", "1", "--json").output
                    == #"{"larder":1,"command":"ls","result":{"keys":["Author:7"],"hasMore":true}}"# + "\n")
            for id in ["a", "B"] { try await fixture.rename(id, to: "Soup") }
            let ascending = "Recipe:1\nRecipe:2\nRecipe:B\nRecipe:a\n"
            #expect(try await fixture.larder("ls", "--type", "Recipe").output == ascending)
        }
    }

    @Test("A list that a limit cuts off says so on standard error, and one that it does not says nothing")
    func limitsInWords() async throws {
        try await CommandFixture.withStore { fixture in
            for (limit, lines, told) in [
                (1, 1, "larder: there are more than 1\n"), (4, 4, ""), (Int.max, 4, ""),
            ] {
                let outcome = try await fixture.larder("ls", "--limit", "\(limit)")
                #expect(outcome.status == 0)
                #expect(outcome.output.split(separator: "\n").count == lines && outcome.errors == told, "\(outcome)")
            }
        }
    }

    @Test("Of no keys at all it is told whether there are any")
    func limitsToNone() async throws {
        try await CommandFixture.withStore { fixture in
            for (prefix, hasMore) in [("Author", true), ("Nobody", false)] {
                let outcome = try await fixture.larder("ls", "--prefix", prefix, "--limit", "0", "--json")
                #expect(outcome.output.contains(#""result":{"keys":[],"hasMore":\#(hasMore)}"#), "\(outcome)")
            }
        }
    }

    @Test("get shows fields, references and parts")
    func gets() async throws {
        try await CommandFixture.withStore { fixture in
            let text = try await fixture.larder("get", "Recipe:1")
            #expect(text.status == 0)
            #expect(text.output.contains("  title: \"Soup\"\n"))
            #expect(
                try await fixture.larder("get", "Recipe:1", "--json").outputWithoutSizes == #"""
                    {"larder":1,"command":"get","result":{"key":"Recipe:1","type":"Recipe","isPart":false,"bytes":0,\#
                    "fields":{"author":{"$ref":"Author:7"},"id":"1","minutes":20,"size":{"$part":"Recipe:1.size"},\#
                    "title":"Soup"}}}

                    """#)
            #expect(try await fixture.larder("get", "Recipe:1.size").output.contains("  grams: 400\n"))
            let part = try await fixture.larder("get", "Recipe:1.size", "--json")
            #expect(part.output.contains(#""key":"Recipe:1.size","type":"Size","isPart":true"#), "\(part.output)")
        }
    }

    @Test("get prints a line for the object and for each field, whatever its key has")
    func getsLines() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename(#"1\n2"#, to: "Stew")
            let outcome = try await fixture.larder("get", "Recipe:1\n2")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.count > 2 && lines.dropFirst().allSatisfy { $0.hasPrefix("  ") }, "\(outcome.output)")
        }
    }

    @Test("get of an unknown object ends with 3")
    func getsNothing() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder("get", "Recipe:9", "--json")
            #expect(outcome.status == 3)
            #expect(outcome.output == "")
            #expect(
                outcome.errors == #"""
                    {"larder":1,"command":"get","error":{"code":"command.unknownObject",\#
                    "message":"The store does not hold Recipe:9","hint":"'larder ls' lists the cache keys; 'larder fetch' asks a server","exit":3,"key":"Recipe:9","presence":"absent"}}

                    """#)
        }
    }

    @Test("get says in JSON that an object is known to be deleted, and not that the store does not hold it")
    func getsDeleted() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            let outcome = try await fixture.larder("get", "Recipe:1", "--json")
            #expect(outcome.status == 3 && outcome.output == "")
            #expect(outcome.errors.contains(#""code":"command.unknownObject""#), "\(outcome.errors)")
            #expect(outcome.errors.contains(#""key":"Recipe:1","presence":"deleted"}"#), "\(outcome.errors)")
        }
    }

    @Test("info tells sizes, and counts by type where asked")
    func informs() async throws {
        try await CommandFixture.withStore { fixture in
            let json = try await fixture.larder("info", "--types", "--json").outputWithoutSizes
            #expect(json.hasPrefix(#"{"larder":1,"command":"info","result":{"store":""#))
            #expect(json.contains(#""records":5,"changes":{"epoch":""#))
            #expect(json.contains(#"{"name":"records","entries":5,"pages":1,"depth":1}"#))
            #expect(json.contains(#"{"type":"Recipe","objects":2,"parts":0,"tombstones":0,"bytes":0}"#))
            #expect(try await fixture.larder("info").output.contains("records     5\n"))
        }
    }

    @Test("info tells the size of the data file, and the first and the last number of the log of changes")
    func informsOfSize() async throws {
        try await CommandFixture.withStore { fixture in
            for title in ["Stew", "Broth"] { try await fixture.rename("1", to: title) }
            let json = try await fixture.larder("info", "--json").output
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            let size = try Data(contentsOf: file).count
            #expect(json.contains(#""generation":1,"bytes":\#(size),"#), "\(json)")
            #expect(json.contains(#","last":3,"first":1}"#), "\(json)")
        }
    }

    @Test("info names the epoch of the log of changes in hexadecimal digits, as changes does")
    func informsOfEpoch() async throws {
        try await CommandFixture.withStore { fixture in
            func epoch(_ verb: String) async throws -> String {
                let json = try await fixture.larder(verb, "--json").output
                return try #require(json.firstMatch(of: /"epoch":"([0-9a-f]{1,16})"/).map { String($0.1) }, "\(json)")
            }
            let (told, logged) = (try await epoch("info"), try await epoch("changes"))
            #expect(told == logged)
        }
    }

    @Test("info tells the document, the operation and the variables of each pin")
    func informsOfPins() async throws {
        try await CommandFixture.withStore { fixture in
            let one = try fixture.operation("One", variables: #"{"id":"1"}"#)
            #expect(try await fixture.larder(["pin", "shown"] + one).status == 0)
            let json = try await fixture.larder("info", "--json").output
            #expect(json.contains(#""pins":[{"name":"shown","document":""#), "\(json)")
            #expect(json.contains(#""operation":"One","variables":{"id":"1"}}]"#), "\(json)")
        }
    }

    @Test("info tells how old objects are where asked, and gc counts without --write, and with --dry-run")
    func informsOfAges() async throws {
        try await CommandFixture.withStore { fixture in
            let text = try await fixture.larder("info", "--ages").output
            #expect(text.contains("age         less than 3600 s old: 4 objects, "))
            #expect(text.contains("age         older, or of unknown age: 0 objects, 0 bytes"))
            let schema = ["--schema", fixture.path("schema.graphqls")]
            let before = try fixture.snapshot()
            // Ages are whole seconds: both are to find what came before this one.
            try await Task.sleep(for: .milliseconds(1_100))
            let counted = try await fixture.larder(["gc", "--max-age", "0"] + schema)
            let rehearsed = try await fixture.larder(["gc", "--max-age", "0", "--dry-run"] + schema)
            #expect(counted.output == rehearsed.output && counted.status == 0)
            let evicted = /would be evicted: \d+ objects? and \d+ fields? of the root, \d+ bytes; in use: \d+ bytes\n/
            #expect(counted.errors.contains(evicted), "\(counted.errors)")
            #expect(try await !fixture.larder(["gc"] + schema).errors.contains("evicted"))
            #expect(try fixture.snapshot() == before)
            #expect(try await fixture.larder(["gc", "--dry-run", "--write"] + schema).status == 2)
        }
    }

    @Test("info says of each age how many objects are older, which gc --max-age would let go of")
    func informsOfOlder() async throws {
        try await CommandFixture.withStore { fixture in
            // As a program stored it that ran two hours ago, and two days ago.
            for (id, hours) in [("8", 2), ("9", 48)] {
                var options = Store.Options()
                options.now = { Date() - Double(hours * 3_600) }
                options.silence()
                let store = try Store.open(
                    at: URL(filePath: fixture.store), schemaText: [CommandFixture.schema], options: options)
                let data = #"{"recipe":{"__typename":"Recipe","id":"\#(id)","title":"Old"}}"#
                try await store.partition().write(
                    GraphQLOperation(#"{ recipe(id: "\#(id)") { __typename id title } }"#), json: Array(data.utf8))
                try store.close()
            }
            let json = try await fixture.larder("info", "--ages", "--json").output
            let ages = json.matches(of: /"within":(\d+|null),"objects":(\d+)/).map { (String($0.1), Int($0.2) ?? 0) }
            #expect(ages.map(\.0) == ["3600", "86400", "604800", "2592000", "null"], "\(json)")
            try #require(ages[0].1 > 0 && ages[1].1 > 0 && ages[2].1 > 0, "\(json)")
            let told = try await fixture.larder("info", "--ages").output.matches(
                of: /\n +gc --max-age (\d+) would let go of (\d+) objects?, but of what is needed/
            ).map { "\($0.1): \($0.2)" }
            #expect(told == ["3600: \(ages[1].1 + ages[2].1)", "86400: \(ages[2].1)"], "\(json)")
        }
    }

    @Test("query answers from the store what was only ever in a list")
    func queries() async throws {
        try await CommandFixture.withStore { fixture in
            let data = #"""
                {"recipe":{"__typename":"Recipe","id":"1","title":"Soup",\#
                "author":{"__typename":"Author","id":"7","name":"Ada"}}}
                """#
            let arguments = try ["query"] + fixture.operation("One", variables: #"{"id":"1"}"#)
            let text = try await fixture.larder(arguments)
            #expect(text.status == 0)
            #expect(text.output == "{\"data\":\(data)}\n")
            #expect(text.errors == "")
            #expect(
                try await fixture.larder(arguments + ["--json"]).outputWithoutSizes == #"""
                    {"larder":1,"command":"query","result":{"data":\#(data),"isComplete":true,"missing":[],\#
                    "errors":[],"age":0,"isExpired":false}}

                    """#)
        }
    }

    @Test("query of what the store lacks ends with 3 and the missing paths")
    func misses() async throws {
        try await CommandFixture.withStore { fixture in
            let arguments = try ["query"] + fixture.operation("One", variables: #"{"id":"9"}"#)
            let text = try await fixture.larder(arguments)
            #expect(text.status == 3)
            #expect(text.output == "")
            #expect(text.errors.hasPrefix("larder: ") && text.errors.contains(": recipe\nlarder: hint: "))
            let json = try await fixture.larder(arguments + ["--json"])
            #expect(json.status == 3)
            #expect(json.errors.contains(#""code":"larder.miss""#))
            #expect(json.errors.contains(#""exit":3,"missing":[["recipe"]]"#))
            let partial = try await fixture.larder(arguments + ["--partial", "--json"])
            #expect(partial.status == 0)
            #expect(partial.output.contains(#""isComplete":false,"missing":[["recipe"]]"#))
            let words = try await fixture.larder(arguments + ["--partial"])
            #expect(words.errors == "larder: the store does not know recipe\n")
        }
    }

    @Test(
        "A verb that reads refuses an operation that is no query, and answers nothing from the query root",
        arguments: ["query", "query --partial", "watch", "fetch --endpoint http://127.0.0.1:9/"],
        ["mutation", "subscription"])
    func refusesOthers(verb: String, kind: String) async throws {
        try await CommandFixture.withStore { fixture in
            let types = "type Mutation { recipe(id: ID!): Recipe } type Subscription { recipe(id: ID!): Recipe }"
            let arguments = [
                "--schema", try fixture.write(CommandFixture.schema + types, to: "more.graphqls"),
                "--operation", try fixture.write("\(kind) { recipe(id: 1) { id title } }", to: "other.graphql"),
            ]
            let outcome = try await fixture.larder(verb.split(separator: " ").map(String.init) + arguments)
            #expect(outcome.status == 2)
            #expect(outcome.output == "")
            #expect(outcome.errors.contains("this is a \(kind)"), "\(outcome.errors)")
        }
    }

    @Test("check finds a sound store sound")
    func checks() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder("check", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.output.contains(#""result":{"isSound":true,"hasCache":true,"pages":"#))
            #expect(outcome.output.contains(#""objects":4,"parts":1,"tombstones":0,"references":4,"keys":4"#))
        }
    }

    @Test("The folder may be named by the environment, and --store counts for more")
    func readsEnvironment() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await LarderProcess.run(
                ["ls", "--type", "Author"], environment: ["LARDER_STORE": fixture.store])
            #expect(outcome.output == "Author:7\n")
            let named = try await LarderProcess.run(
                ["ls", "--type", "Author", "--store", fixture.store],
                environment: ["LARDER_STORE": fixture.path("elsewhere")])
            #expect(named.output == "Author:7\n", "\(named.errors)")
        }
    }

    @Test(
        "Reading changes no file and makes none",
        arguments: ["info", "ls", "get", "query", "watch", "check"])
    func leavesNoTrace(verb: String) async throws {
        try await CommandFixture.withStore { fixture in
            var arguments = [verb]
            if verb == "query" { arguments += try fixture.operation("One", variables: #"{"id":"1"}"#) }
            if verb == "get" { arguments += ["Recipe:1"] }
            if verb == "watch" { arguments += ["Recipe:1", "--count", "1"] }
            let before = try fixture.snapshot()
            let outcome = try await fixture.larder(arguments)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test("Reading where there is no store makes none", arguments: ["info", "ls", "get x", "check", "watch x"])
    func makesNoStore(command: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let before = try fixture.snapshot()
            let outcome = try await fixture.larder(command.split(separator: " ").map(String.init))
            #expect(outcome.status == 1)
            #expect(outcome.errors.hasPrefix("larder: There is no store at \(fixture.store)\nlarder: hint: "))
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test(
        "A real response is ingested and answered again",
        .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))
    func answersRealData() async throws {
        try await withTemporaryFolder { folder in
            let data = SharedData.folder.appending(path: "github")
            let store = ["--store", folder.appending(path: "store").path]
            let name = "IssuesAndCommentsForRepository"
            let options = [
                "--schema", data.appending(path: "schema.graphqls").path,
                "--operation", data.appending(path: "\(name).graphql").path,
            ]
            let response = data.appending(path: "\(name).json").path
            let ingested = try await LarderProcess.run(["ingest", "--response", response] + options + store)
            #expect(ingested.status == 0, "\(ingested.errors)")
            let answered = try await LarderProcess.run(["query"] + options + store)
            #expect(answered.status == 0, "\(answered.errors)")
            let recorded = try asked(JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: response))))
            let found = try asked(JSONSerialization.jsonObject(with: Data(answered.output.utf8)))
            #expect(found == recorded)
        }
    }

    /// A response without the `__typename`s that the recording program asked for beside the operation.
    private func asked(_ value: Any) -> NSObject {
        switch value {
        case let members as [String: Any]:
            NSDictionary(dictionary: members.filter { $0.key != "__typename" }.mapValues(asked))
        case let elements as [Any]: NSArray(array: elements.map(asked))
        default: value as? NSObject ?? NSNull()
        }
    }

    @Test("info tells how many pages of the data file are free")
    func informsOfFreePages() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: String(repeating: "x", count: 1 << 20))
            #expect(try await fixture.larder("rm", "Recipe:1").status == 0)
            let json = try await fixture.larder("info", "--json").output
            let free = try #require(json.firstMatch(of: /"freePages":(\d+),/).flatMap { Int($0.1) }, "\(json)")
            let pageSize = try #require(json.firstMatch(of: /"pageSize":(\d+),/).flatMap { Int($0.1) }, "\(json)")
            #expect(free * pageSize > 1 << 19, "\(json)")
        }
    }

    @Test("gc says in JSON how many objects, and fields of the root, would be evicted for their age")
    func countsEvicted() async throws {
        try await CommandFixture.withStore { fixture in
            // A program stored this object two hours ago.
            var options = Store.Options()
            options.now = { Date() - 7_200 }
            options.silence()
            let store = try Store.open(
                at: URL(filePath: fixture.store), schemaText: [CommandFixture.schema], options: options)
            try await store.partition().write(
                GraphQLOperation(#"{ recipe(id: "8") { __typename id title } }"#),
                json: Array(#"{"recipe":{"__typename":"Recipe","id":"8","title":"Old"}}"#.utf8))
            try store.close()
            let told = try await fixture.larder("gc", "--max-age", "3600", "--json").output
            let evicted = /"evicted":\{"objects":[1-9]\d*,"fields":[1-9]\d*,"bytes":\d+,"bytesInUse":\d+\}/
            #expect(told.contains(evicted), "\(told)")
        }
    }

    @Test("info --types and check count objects that are known to be deleted apart from others")
    func countsDeleted() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            let info = try await fixture.larder("info", "--types", "--json").output
            #expect(info.contains(#"{"type":"Recipe","objects":1,"parts":0,"tombstones":1,"#), "\(info)")
            let check = try await fixture.larder("check", "--json").output
            #expect(check.contains(#","tombstones":1,"#), "\(check)")
        }
    }

    @Test("info tells in words how many bytes the data file and each type have")
    func informsInWords() async throws {
        try await CommandFixture.withStore { fixture in
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            let size = try Data(contentsOf: file).count
            let words = try await fixture.larder("info", "--types").output
            #expect(words.contains("\nsize        \(size) bytes, pages of "), "\(words)")
            let type = /\ntype        Recipe: 2 objects, 0 parts, 0 tombstones, [1-9]\d* bytes\n/
            #expect(words.contains(type), "\(words)")
        }
    }

    @Test("get tells in JSON the number of bytes that it tells in words")
    func getsBytes() async throws {
        try await CommandFixture.withStore { fixture in
            let words = try await fixture.larder("get", "Recipe:1").output
            let bytes = try #require(words.firstMatch(of: /^Recipe:1 Recipe ([1-9]\d*) bytes\n/).map { String($0.1) })
            let json = try await fixture.larder("get", "Recipe:1", "--json").output
            #expect(json.contains(#""isPart":false,"bytes":\#(bytes),"#), "\(json)")
        }
    }

    @Test("info tells in JSON the bytes of each type and age that it tells in words")
    func informsOfBytesInJSON() async throws {
        try await CommandFixture.withStore { fixture in
            let words = try await fixture.larder("info", "--types", "--ages").output
            let json = try await fixture.larder("info", "--types", "--ages", "--json").output
            let type = words.firstMatch(of: /\ntype        Recipe: 2 objects, .+, ([1-9]\d*) bytes\n/)
            let ofType = try #require(type.map { String($0.1) }, "\(words)")
            let row = #"{"type":"Recipe","objects":2,"parts":0,"tombstones":0,"bytes":\#(ofType)}"#
            #expect(json.contains(row), "\(json)")
            let age = words.firstMatch(of: /\nage         less than 3600 s old: 4 objects, ([1-9]\d*) bytes/)
            let ofAge = try #require(age.map { String($0.1) }, "\(words)")
            #expect(json.contains(#"{"within":3600,"objects":4,"bytes":\#(ofAge)}"#), "\(json)")
        }
    }

    @Test("info counts the pages of values that take more than a page")
    func informsOfLargeValues() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: String(repeating: "x", count: 1 << 20))
            let json = try await fixture.larder("info", "--json").output
            let pageSize = try #require(json.firstMatch(of: /"pageSize":(\d+),/).flatMap { Int($0.1) }, "\(json)")
            var pages = 0
            for match in json.matches(of: /"pages":(\d+),"depth"/) { pages += Int(match.1) ?? 0 }
            #expect(pages * pageSize > 1 << 20, "\(json)")
        }
    }

    @Test("check counts in JSON the pages, the names and the logged changes")
    func countsPagesAndNames() async throws {
        try await CommandFixture.withStore { fixture in
            for title in ["Stew", "Broth"] { try await fixture.rename("1", to: title) }
            let check = try await fixture.larder("check", "--json").output
            #expect(check.contains(/"pages":[1-9]\d*,"objects":4,/), "\(check)")
            #expect(check.contains(/"names":[1-9]\d*,"changes":3,/), "\(check)")
        }
    }

    @Test("query says in JSON how many seconds old its answer is, and null where that is not known")
    func tellsAge() async throws {
        // A program stored this object two hours ago; or the clock was set back since.
        for ago in [7_200, -7_200] as [TimeInterval] { try await tellAge(ofObjectStored: ago) }
    }

    private func tellAge(ofObjectStored ago: TimeInterval) async throws {
        try await CommandFixture.withStore { fixture in
            var options = Store.Options()
            options.now = { Date() - ago }
            options.silence()
            let store = try Store.open(
                at: URL(filePath: fixture.store), schemaText: [CommandFixture.schema], options: options)
            let document = #"{ recipe(id: "8") { __typename id title } }"#
            try await store.partition().write(
                GraphQLOperation(document),
                json: Array(#"{"recipe":{"__typename":"Recipe","id":"8","title":"Old"}}"#.utf8))
            try store.close()
            let operation = try fixture.write(document, to: "old.graphql")
            let told = try await fixture.larder("query", "--operation", operation, "--json")
            guard ago > 0 else { return #expect(told.output.contains(#""age":null,"#), "\(told)") }
            let age = try #require(told.output.firstMatch(of: /"age":(\d+),/).flatMap { Int($0.1) }, "\(told)")
            #expect((7_200..<10_800).contains(age), "\(told)")
        }
    }

    @Test("info tells the first number that the log of changes still has, once a compaction has emptied the log")
    func informsOfFirst() async throws {
        try await CommandFixture.withStore { fixture in
            for title in ["Stew", "Broth"] { try await fixture.rename("1", to: title) }
            #expect(try await fixture.larder("compact").status == 0)
            let json = try await fixture.larder("info", "--json").output
            let told = try #require(json.firstMatch(of: /"last":(\d+),"first":(\d+)\}/), "\(json)")
            let (last, first) = (try #require(Int(told.1)), try #require(Int(told.2)))
            #expect(last > 1 && first == last + 1, "\(json)")
        }
    }

    @Test("ls lists the keys that are of the type and begin with the prefix")
    func listsOfTypeByPrefix() async throws {
        try await CommandFixture.withStore { fixture in
            let listed = try await fixture.larder("ls", "--type", "Recipe", "--prefix", "Recipe:2")
            #expect(listed.output == "Recipe:2\n", "\(listed)")
        }
    }

    @Test("ls --deleted lists objects that are known to be no more, of whatever type")
    func listsDeleted() async throws {
        try await CommandFixture.withStore { (fixture) async throws in
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            #expect(try await fixture.larder("ls", "--prefix", "Rec", "--deleted").output == "Recipe:1\nRecipe:2\n")
            #expect(try await fixture.larder("ls", "--deleted").output == "Author:7\nQUERY_ROOT\nRecipe:1\nRecipe:2\n")
        }
    }
}
