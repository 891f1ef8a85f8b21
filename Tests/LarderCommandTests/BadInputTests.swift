import Foundation
import LarderCommandLine
import LarderTestSupport
import Testing

@Suite("Bad input", .timeLimit(.minutes(10)))
struct BadInputTests {
    /// What a file may be instead of what it should.
    enum Fault: String, CaseIterable {
        case missing, folder, empty, garbage

        func make(in fixture: CommandFixture) throws -> String {
            let path = fixture.path("faulty")
            switch self {
            case .missing: break
            case .folder: try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            case .empty: try Data().write(to: URL(filePath: path))
            case .garbage:
                try Data((0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 167 ^ 0x9D) }).write(to: URL(filePath: path))
            }
            return path
        }
    }

    /// Whether it is one line, and one with a hint.
    private func isOneLine(_ errors: String) -> Bool {
        let lines = errors.split(separator: "\n", omittingEmptySubsequences: false)
        return lines.count == 3 && lines[0].hasPrefix("larder: ") && lines[1].hasPrefix("larder: hint: ")
            && lines[2].isEmpty
    }

    private static let id = "00000000-0000-4000-8000-000000000000"

    @Test("A store's name that holds a zero byte, at which the system would cut it, is refused")
    func zeroByte() {
        var options = StoreOptions()
        options.path = "store\0.backups"
        let failure = #expect(throws: Failure.self) { try options.url() }
        #expect(failure?.exit == .usage)
    }

    @Test(
        "A file that cannot be used is one line on standard error, and status 2", arguments: Fault.allCases,
        ["--schema", "--operation", "--variables", "--response"])
    func refusesFiles(fault: Fault, option: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let faulty = try fault.make(in: fixture)
            var files = [
                "--schema": fixture.path("schema.graphqls"), "--operation": fixture.path("operations.graphql"),
                "--variables": fixture.path("two.json"), "--response": fixture.path("list.json"),
            ]
            files[option] = faulty
            let arguments = ["ingest", "--name", "List"] + files.flatMap { [$0, $1] }
            let text = try await fixture.larder(arguments)
            #expect(text.status == 2)
            #expect(text.output == "")
            #expect(isOneLine(text.errors), "\(text.errors)")
            let json = try await fixture.larder(arguments + ["--json"])
            #expect(json.status == 2)
            #expect(json.errors.hasPrefix(#"{"larder":1,"command":"ingest","error":{"code":""#))
        }
    }

    @Test("Why a file cannot be used is told: its name, what it is, and that it cannot be opened or looked at")
    func unopenable() async throws {
        try await CommandFixture.withFiles { fixture in
            func told(_ path: String) async throws -> String {
                let outcome = try await fixture.larder(
                    "query", "--schema", fixture.path("schema.graphqls"), "--operation", path)
                #expect(outcome.status == 2, "\(outcome.errors)")
                return outcome.errors
            }
            #expect(try await told("").contains(": its name is empty\n"))
            #expect(try await told(fixture.folder.path).contains(": it is a folder\n"))
            #expect(try await told(fixture.write("", to: "empty")).contains(": it is empty\n"))
            let name = String(repeating: "a", count: 300)
            #expect(try await told(fixture.path(name)).contains(": File name too long"))
            #if os(Linux)
            let socket = fixture.path("socket")
            try #require(mknod(socket, S_IFSOCK | 0o600, 0) == 0)
            #expect(try await told(socket).contains(": it cannot be read\n"))
            #endif
        }
    }

    @Test(
        "Arguments that make no sense are usage errors",
        arguments: [
            "nonsense", "ls --wat", "ls --limit x", "ls --limit=-1", "get", "rm", "rm a --type T", "rm a --of b",
            "rm a --as gone", "rm --field f --as deleted", "watch", "watch a --count 0", "query", "fetch", "ingest",
            "rm --type T --field f", "rm --of a --type T", "rm --field=", "rm --type=", "watch a --operation b",
            "watch --operation a --fragment b", "watch --fragment b", "watch a --count=-1", "changes --count 0",
            "changes --since=-1", "transfers watch --count 0", "transfers watch x", "transfers show x",
            "transfers list --state gone", "transfers list --limit=-1", "mutations show x",
            "mutations list --state gone", "mutations list --limit=-1", "transfers gc --timeout 0",
            "transfers gc --region=", "ls --partition Upper", "ls --partition a-b", "ls --env a --partition b",
            "gc --max-age=-1", "gc --max-bytes=-1", "mutations edit --all --variables two.json",
            "mutations replay \(id) --state deadLetter", "mutations replay \(id) --env a",
            "mutations replay \(id) --partition a", "mutations replay \(id) --all", "sign-in --timeout 86401",
            "sign-in --timeout 0", "subscribe --count 0 --operation a --endpoint http://127.0.0.1:1/",
            "sync --pages 0 --operation a --endpoint http://127.0.0.1:1/",
            "sync --delta-lifetime 0 --operation a --endpoint http://127.0.0.1:1/",
        ])
    func refusesArguments(command: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let arguments = command.split(separator: " ").map(String.init)
            let text = try await fixture.larder(arguments)
            #expect(text.status == 2)
            #expect(text.output == "")
            #expect(isOneLine(text.errors), "\(text.errors)")
            let json = try await fixture.larder(arguments + ["--json"])
            #expect(json.errors.contains(#""error":{"code":"command.usage","message":""#))
        }
    }

    @Test("A failure names the verb, also the one that is meant where a verb of verbs names none")
    func namesMeantVerb() async throws {
        for (arguments, verb) in [("transfers --limit=-1", "transfers list"), ("mutations show x", "mutations show")] {
            let outcome = try await LarderProcess.run(
                arguments.split(separator: " ").map(String.init) + ["--json", "--store", "x"])
            #expect(outcome.errors.hasPrefix(#"{"larder":1,"command":"\#(verb)","error":"#), "\(outcome.errors)")
            #expect(!outcome.errors.contains("There is no verb"), "\(outcome.errors)")
        }
    }

    @Test("What stands behind two dashes is no option: it does not turn a failure into JSON")
    func behindDashes() async throws {
        let outcome = try await LarderProcess.run(["get", "--store", "x", "--", "Recipe:1", "--json"])
        #expect(outcome.status == 2 && isOneLine(outcome.errors), "\(outcome.errors)")
    }

    @Test(
        "A verb that there is not is named, whatever options stand behind it, and so is what lists the verbs",
        arguments: [
            ("larder", "objects --store X", "objects", "larder"), ("larder", "nonsense", "nonsense", "larder"),
            ("larder", "mutations drop 1 --store X", "mutations drop", "larder mutations"),
            ("larder-migrate", "env move --to y", "env move", "larder-migrate env"),
        ])
    func namesUnknownVerb(program: String, command: String, named: String, parent: String) async throws {
        let outcome = try await LarderProcess.run(program: program, command.split(separator: " ").map(String.init))
        #expect(outcome.status == 2)
        let told = "\(program): There is no verb '\(named)'; '\(parent) --help' lists the verbs\n"
        #expect(outcome.errors.hasPrefix(told), "\(outcome.errors)")
    }

    @Test("A failure names the tool where its arguments name no verb", arguments: ["larder", "larder-migrate"])
    func namesTool(program: String) async throws {
        let outcome = try await LarderProcess.run(program: program, ["nonsense", "--json", "--store", "x"])
        let beginning = #"{"\#(program)":1,"command":"\#(program)","error":{"code":"command.usage","#
        #expect(outcome.status == 2 && outcome.errors.hasPrefix(beginning), "\(outcome.errors)")
    }

    @Test("Without a store's name nothing is guessed")
    func needsStore() async throws {
        for (arguments, variables) in [
            (["ls"], [:]), (["ls"], ["LARDER_STORE": ""]), (["ls", "--store", ""], [:]),
        ] as [([String], [String: String])] {
            let outcome = try await LarderProcess.run(arguments, environment: variables)
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("LARDER_STORE"))
        }
    }

    @Test(
        "Documents and variables that do not fit are told with their reason",
        arguments: [
            ("query Q { nothing }", "{}", "no field nothing"), ("query Q {", "{}", "Expected"),
            ("query Q { recipes { id } } query R { recipes { id } }", "{}", "one must be named"),
            ("query Q($n: Int!) { recipes(first: $n) { id } }", "{}", "$n"),
            ("query Q($n: Int) { recipes(first: $n) { id } }", #"{"n":"x"}"#, "$n"),
            ("query Q { recipes { id } }", #"{"n":1}"#, "$n"), ("query Q { recipes { id } }", "[1]", "no JSON object"),
            ("query Q { recipes { id } }", #"{"n":"#, "ends in the middle"),
        ])
    func refusesDocuments(document: String, variables: String, reason: String) async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder([
                "query", "--schema", fixture.path("schema.graphqls"), "--operation",
                fixture.write(document, to: "document.graphql"), "--variables",
                fixture.write(variables, to: "variables.json"),
            ])
            #expect(outcome.status == 2)
            #expect(isOneLine(outcome.errors) && outcome.errors.contains(reason), "\(outcome.errors)")
        }
    }

    @Test("The error for an operation that the document lacks names the operations it has")
    func refusesName() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(["query"] + fixture.operation("Nothing"))
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("List, One"))
        }
    }

    @Test("A schema of another server is told")
    func refusesSchema() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder([
                "query", "--schema", fixture.write("type Query { other: Int }", to: "other.graphqls"), "--operation",
                fixture.path("operations.graphql"), "--name", "List",
            ])
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("no field recipes"))
        }
    }

    @Test("A response to another operation is refused, and nothing is stored")
    func refusesResponse() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(
                ["ingest", "--response", fixture.path("list.json")]
                    + fixture.operation("One", variables: #"{"id":"1"}"#))
            #expect(outcome.status == 2)
            #expect(isOneLine(outcome.errors), "\(outcome.errors)")
            #expect(try await fixture.larder("ls").output == "Author:7\nQUERY_ROOT\nRecipe:1\nRecipe:2\n")
        }
    }

    @Test("A file or another folder in the store's place is told", arguments: Fault.allCases)
    func refusesStore(fault: Fault) async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await LarderProcess.run(["info", "--store", fault.make(in: fixture)])
            #expect(outcome.status == (fault == .missing || fault == .folder ? 1 : 2))
            #expect(isOneLine(outcome.errors), "\(outcome.errors)")
        }
    }

    @Test(
        "A damaged data file ends every verb with 5",
        arguments: ["info", "ls", "get Recipe:1", "watch Recipe:1", "check", "compact", "rm Recipe:1"],
        ["foreign", "truncated", "empty", "gone"])
    func reportsDamage(command: String, fault: String) async throws {
        try await CommandFixture.withStore { fixture in
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            let bytes = try Data(contentsOf: file)
            switch fault {
            case "foreign": try (Data("This is no cache. ".utf8) + bytes.dropFirst(18)).write(to: file)
            case "gone": try FileManager.default.removeItem(at: file)
            default: try bytes.prefix(fault == "empty" ? 0 : 8_192).write(to: file)
            }
            let outcome = try await fixture.larder(command.split(separator: " ").map(String.init))
            #expect(outcome.status == 5, "\(outcome.errors)")
            var errors = outcome.errors
            // Each finding is a line of its own before.
            if command == "check" { errors.removeSubrange(...(errors.firstIndex(of: "\n") ?? errors.startIndex)) }
            #expect(isOneLine(errors), "\(outcome.errors)")
        }
    }

    /// Flips a bit in each of two stored titles.
    private func flipBits(of fixture: CommandFixture) throws {
        let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
        var bytes = try Data(contentsOf: file)
        for title in ["Soup", "Bread"] {
            let place = try #require(bytes.range(of: Data(title.utf8), options: .backwards))
            bytes[place.lowerBound] ^= 1
        }
        try bytes.write(to: file)
    }

    @Test("Flipped bits in stored values are found by check, which names each place, and by the one who checks again")
    func findsFlippedBits() async throws {
        try await CommandFixture.withStore { fixture in
            try flipBits(of: fixture)
            for _ in 1...2 {
                let outcome = try await fixture.larder("check", "--json")
                #expect(outcome.status == 5)
                #expect(outcome.errors.contains(#""exit":5"#))
                let count = outcome.errors.ranges(of: ": it has another checksum").count
                #expect(count == 2 && outcome.errors.contains(#""findings":["record "#), "\(outcome.errors)")
                #expect(try await fixture.larder("get", "Recipe:1").status == 5)
            }
        }
    }

    @Test("Nothing is written into the store where standard output is closed")
    func survivesClosedOutput() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await LarderProcess.run(shell: #"exec "$@" >&-"#, ["ls", "--store", fixture.store])
            #expect(outcome.status == 0)
            #expect(outcome.errors == "")
            #expect(try await fixture.larder("check").status == 0)
        }
    }

    @Test("A reader that goes away ends the command quietly")
    func survivesBrokenPipe() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await LarderProcess.run(
                shell: #"{ "$@"; echo "status $?" >&2; } | exec 0<&-"#, ["ls", "--store", fixture.store])
            #expect(outcome.errors == "status 0\n")
        }
    }

    @Test("Help is printed on standard output", arguments: ["--help", "ls --help", "help watch"])
    func helps(command: String) async throws {
        let outcome = try await LarderProcess.run(command.split(separator: " ").map(String.init))
        #expect(outcome.status == 0)
        #expect(outcome.output.contains("USAGE: larder"))
        #expect(outcome.errors == "")
    }

    @Test("A value that does not fit the schema is told with its path in the response")
    func namesPath() async throws {
        try await CommandFixture.withFiles { fixture in
            let response = CommandFixture.list.replacing(#""grams":400"#, with: #""grams":"many""#)
            let outcome = try await fixture.larder(
                ["ingest", "--response", fixture.write(response, to: "other.json")]
                    + fixture.operation("List", variables: #"{"n":2}"#))
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(", at recipes[0].size.grams\n"), "\(outcome.errors)")
        }
    }

    @Test("A file on standard input is called that where it cannot be used")
    func namesStandardInput() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(
                ["query"] + fixture.operation("One") + ["--variables", "-"], input: "[1]")
            #expect(outcome.status == 2)
            let told = "larder: the variables on standard input: it holds no JSON object\n"
            #expect(outcome.errors.hasPrefix(told), "\(outcome.errors)")
        }
    }

    @Test("Standard input is one file: the response and the variables cannot both be on it")
    func standardInputTwice() async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.larder(
                ["ingest", "--response", "-", "--variables", "-"] + fixture.operation("List"),
                input: CommandFixture.list)
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("Only one of --response and --variables"), "\(outcome.errors)")
        }
    }

    @Test(
        "Output that cannot be written is told as that, with status 1",
        .enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "needs /dev/full"))
    func fullOutput() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await LarderProcess.run(
                shell: #"exec "$@" >/dev/full"#, ["ls", "--json", "--store", fixture.store])
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"command.output""#), "\(outcome.errors)")
        }
    }

    @Test("Output into a pipe that would block is waited for, and all of it arrives")
    func blockedOutput() async throws {
        try await CommandFixture.withStore { fixture in
            // More than a pipe holds.
            let title = String(repeating: "x", count: 1 << 20)
            try await fixture.rename("1", to: title)
            let process = Process()
            process.executableURL = LarderProcess.executable()
            process.arguments = ["get", "Recipe:1", "--store", fixture.store]
            let pipe = Pipe.uninherited()
            let (reader, writer) = (pipe.fileHandleForReading, pipe.fileHandleForWriting)
            try #require(fcntl(writer.fileDescriptor, F_SETFL, O_NONBLOCK) == 0)
            process.standardOutput = writer
            try process.start()
            func hasRoom() -> Bool {
                var waiting = pollfd(fd: writer.fileDescriptor, events: Int16(POLLOUT), revents: 0)
                return poll(&waiting, 1, 0) == 1
            }
            while hasRoom(), process.isRunning { try await Task.sleep(for: .milliseconds(5)) }
            try writer.close()
            let output = String(decoding: try reader.readToEnd() ?? Data(), as: UTF8.self)
            await process.ended()
            #expect(process.terminationStatus == 0)
            #expect(output.contains("  title: \"\(title)\"\n"), "\(output.utf8.count) bytes")
        }
    }

    @Test("check says in JSON how many findings there are")
    func countsFindings() async throws {
        try await CommandFixture.withStore { fixture in
            try flipBits(of: fixture)
            let told = try await fixture.larder("check", "--json").errors
            let object = try JSONSerialization.jsonObject(with: Data(told.utf8)) as? [String: Any]
            let error = try #require(object?["error"] as? [String: Any], "\(told)")
            let (count, findings) = (error["findingCount"] as? Int, error["findings"] as? [String])
            #expect(count == findings?.count && (count ?? 0) > 1, "\(told)")
        }
    }
}
