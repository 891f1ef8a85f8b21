import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite(
    "What verbs of environments take and tell", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct ToldEnvironmentTests {
    /// Who works with the current environment; empty for a guest.
    private func user(_ fixture: MigrationFixture) async throws -> String {
        try result(await fixture.migrate("env", "current", "--json"))["user"] as? String ?? ""
    }

    @Test("An environment is entered as the user who worked there last, unless another is named, or the guest")
    func users() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            for name in ["bob", "ada"] {
                #expect(try await fixture.migrate("env", "use", "staging", "--user", name).status == 0)
                #expect(try await user(fixture) == name)
            }
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            #expect(try await user(fixture) == "")
            func planned(_ more: String...) async throws -> String {
                let arguments = ["plan", "--use", "staging", "--json", "--store", fixture.store.path] + more
                let report = try result(await MigrateProcess.run(arguments))["switch"] as? [String: Any]
                return try text((report?["to"] as? [String: Any])?["user"])
            }
            #expect(try await planned() == #""ada""#)
            #expect(try await planned("--user", "bob") == #""bob""#)
            #expect(try await planned("--guest") == "null")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            #expect(try await user(fixture) == "ada")
            #expect(try await fixture.migrate("env", "use", "staging", "--guest").status == 0)
            #expect(try await user(fixture) == "")
            #expect(try await fixture.migrate("env", "use", "staging", "--guest", "--user", "x").status == 2)
        }
    }

    @Test("Where another place decides than the store, env current and env use say which it is")
    func decidedElsewhere() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging("--user", "ada")
            let variable = ["LARDER_ENV": "other"]
            let text = try await fixture.migrate("env", "current", environment: variable)
            #expect(text.output == "other\n")
            #expect(text.errors.contains("the store's current one is staging; the variable LARDER_ENV decides"))
            let current = try await fixture.migrate("env", "current", "--json", environment: variable)
            #expect(try result(current)["user"] is NSNull)
            #expect(try result(current)["store"] as? String == "staging")
            let file = fixture.folder.appending(path: ".larder.json")
            try Data(#"{"environment":"staging"}"#.utf8).write(to: file)
            let use = try await fixture.migrate("env", "use", "other")
            #expect(use.status == 0)
            #expect(use.errors.contains(".larder.json says staging to the command line"), "\(use.errors)")
            #expect(try await !fixture.migrate("env", "use", "staging").errors.contains("to the command line"))
        }
    }

    @Test("Of a file with several environments, or APIs, the one is taken that is named")
    func named() async throws {
        try await MigrationFixture.with { fixture in
            func url(_ arguments: String...) async throws -> String {
                let added = try await MigrateProcess.run(
                    ["env", "add"] + arguments + ["--store", fixture.store.path], in: fixture.folder)
                #expect(added.status == 0, "\(added.errors)")
                let shown = try result(await fixture.migrate("env", "show", arguments[0], "--json"))
                return try text((shown["definition"] as? [String: Any])?["api"]).replacing("\\/", with: "/")
            }
            let own =
                #"{"larder":1,"environments":{"a":{"api":{"url":"https://a/"}},"b":{"api":{"url":"https://b/"}}}}"#
            try Data(own.utf8).write(to: fixture.folder.appending(path: "larder.json"))
            #expect(try await url("b", "--from", "larder.json") == #"{"url":"https://b/"}"#)
            let apis = """
                {"AppSync":{"Default":{"ApiUrl":"https://d/","Region":"r-1","AuthMode":"API_KEY"},
                "Movies":{"ApiUrl":"https://m/","Region":"r-1","AuthMode":"API_KEY"}}}
                """
            try Data(apis.utf8).write(to: fixture.folder.appending(path: "awsconfiguration.json"))
            #expect(try await url("c", "--from", "awsconfiguration.json").contains(#""url":"https://d/""#))
            let movies = try await url("d", "--from", "awsconfiguration.json", "--api", "Movies")
            #expect(movies.contains(#""url":"https://m/""#), "\(movies)")
            #expect(
                try await url("e", "--url", "https://e/", "--region", "r-2") == #"{"region":"r-2","url":"https://e/"}"#)
            try Data("https://f/?key=1\n".utf8).write(to: fixture.folder.appending(path: "url"))
            #expect(try await url("f", "--url", "@url") == #"{"url":"https://f/?key=1"}"#)
        }
    }

    @Test("A file's predecessor must be there when the environment is new, and may be gone when it is known")
    func predecessor() async throws {
        try await MigrationFixture.with { fixture in
            let api = #"{"url":"https://staging.example/graphql"}"#
            let own = #"{"larder":1,"environments":{"next":{"api":\#(api),"succeeds":"old"}}}"#
            try Data(own.utf8).write(to: fixture.folder.appending(path: "larder.json"))
            let add = ["env", "add", "next", "--from", "larder.json", "--json", "--store", fixture.store.path]
            let unknown = try await MigrateProcess.run(add, in: fixture.folder)
            #expect(unknown.status == 3, "\(unknown.errors)")
            #expect(unknown.errors.contains(#""code":"operations.unknownEnvironment""#), "\(unknown.errors)")
            _ = try await fixture.add("next")
            let known = try await MigrateProcess.run(add, in: fixture.folder)
            #expect(known.status == 0, "\(known.errors)")
        }
    }

    @Test("A predecessor that the command line names goes before the one that the file names")
    func namedPredecessor() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let own = #"{"larder":1,"environments":{"next":{"api":{"url":"https://next/"},"succeeds":"old"}}}"#
            try Data(own.utf8).write(to: fixture.folder.appending(path: "larder.json"))
            let named = ["--from", "larder.json", "--succeeds", "staging"]
            let added = try await MigrateProcess.run(
                ["env", "add", "next", "--store", fixture.store.path] + named, in: fixture.folder)
            #expect(added.status == 0, "\(added.errors)")
        }
    }

    @Test(
        "Arguments of env add that do not go together are refused",
        arguments: [
            [], ["--from", "f", "--url", "https://a/"], ["--url", "https://a/", "--api", "x"],
            ["--from", "f", "--region", "x"],
            ["--url", "https://a/", "--succeeds", "b", "--succeeds-unnamed"],
        ])
    func refused(arguments: [String]) async throws {
        try await MigrationFixture.with { fixture in
            let outcome = try await MigrateProcess.run(
                ["env", "add", "a", "--json", "--store", fixture.store.path] + arguments)
            #expect(outcome.status == 2 && outcome.errors.contains(#""code":"command.usage""#), "\(outcome.errors)")
        }
    }

    @Test("A user without a name, and a user who is a guest as well, are refused")
    func refusedUsers() async throws {
        for user in [["--user", ""], ["--user", "ann", "--guest"]] {
            let outcome = try await MigrateProcess.run(["env", "use", "a", "--json", "--store", "x"] + user)
            #expect(outcome.status == 2 && outcome.errors.contains(#""code":"command.usage""#), "\(outcome.errors)")
        }
    }

    @Test("--park, --carry and --discard exclude each other")
    func refusedWork() async throws {
        for work in [["--park", "--carry"], ["--carry", "--discard"], ["--discard", "--park"]] {
            for verb in [["env", "use", "a"], ["plan", "--use", "a"]] {
                let outcome = try await MigrateProcess.run(verb + work + ["--json", "--store", "x"])
                #expect(outcome.status == 2 && outcome.errors.contains(#""code":"command.usage""#), "\(outcome.errors)")
            }
        }
    }

    @Test("An environment is protected where its file says so, or the option")
    func protectedByFile() async throws {
        try await MigrationFixture.with { fixture in
            let own = """
                {"larder":1,"environments":{"a":{"api":{"url":"https://a/"},"protected":true},
                "b":{"api":{"url":"https://b/"}},"c":{"api":{"url":"https://c/"}}}}
                """
            try Data(own.utf8).write(to: fixture.folder.appending(path: "larder.json"))
            for arguments in [["a"], ["b"], ["c", "--protected"]] {
                let added = try await MigrateProcess.run(
                    ["env", "add"] + arguments + ["--from", "larder.json", "--store", fixture.store.path],
                    in: fixture.folder)
                #expect(added.status == 0, "\(added.errors)")
            }
            let listed = try await fixture.migrate("env", "list").output
            #expect(listed == "- a protected 0 partitions\n- b - 0 partitions\n- c protected 0 partitions\n")
        }
    }

    @Test("With its name repeated a protected environment is changed, left with nothing, repaired and removed")
    func confirmed() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["production", "idle"] { _ = try await fixture.add(name, "--protected") }
            #expect(try await fixture.migrate("env", "use", "production").status == 0)
            try await fixture.queueInCurrent(2)
            let confirm = ["--confirm", "production", "--store", fixture.store.path]
            func confirmed(_ arguments: String...) async throws {
                let outcome = try await MigrateProcess.run(arguments + confirm)
                #expect(outcome.status == 0, "\(arguments): \(outcome.errors)")
            }
            let place = "https://staging.example/graphql"
            try await confirmed("env", "add", "production", "--url", place, "--region", "r-2", "--protected")
            #expect(try await fixture.migrate("env", "list").output.contains("* production protected 1 partition"))
            try await confirmed("repair", "--write")
            try await confirmed("env", "none", "--discard")
            #expect(try await fixture.mutations() == [])
            #expect(try await fixture.migrate("env", "remove", "idle").status == 4)
            #expect(try await fixture.migrate("env", "remove", "idle", "--confirm", "idle").status == 0)
        }
    }

    @Test("Forgetting says on standard error what is to be aborted at the storage")
    func abandoned() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.beginUpload("named", at: "archive", .upload("u-1"))
            try await fixture.beginUpload("unnamed", .uploadAsked(before: []))
            #expect(try await fixture.migrate("env", "use", "other", "--discard").status == 0)
            let done = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--discard")
            #expect(done.output == "forgot staging, 1 partition and 0 mutations\n", "\(done.errors)")
            let named = "the storage archive has parts of media/named: the upload u-1; abort it there"
            #expect(done.errors.contains(named), "\(done.errors)")
            let unnamed = "the storage has parts of media/unnamed: perhaps an upload whose name did not arrive"
            #expect(done.errors.contains(unnamed), "\(done.errors)")
        }
    }

    @Test("A project's file that names no environment is passed over, and one that names it by no text is refused")
    func projectFile() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let inner = fixture.folder.appending(path: "project")
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
            func write(_ text: String, in folder: URL) throws {
                try Data(text.utf8).write(to: folder.appending(path: ".larder.json"))
            }
            try write(#"{"environment":"other"}"#, in: fixture.folder)
            // Environments may be defined there.
            try write(#"{"larder":1,"environments":{}}"#, in: inner)
            #expect(try await fixture.migrate("env", "current", in: inner).output == "other\n")
            for (text, reason) in [
                (#"{"environment":7}"#, "environment is no text"), ("[]", "it holds no JSON object"),
            ] {
                try write(text, in: inner)
                let refused = try await fixture.migrate("env", "current", "--json", in: inner)
                #expect(refused.status == 2 && refused.errors.contains(#""code":"command.file""#), "\(refused)")
                #expect(refused.errors.contains("project/.larder.json: \(reason)"), "\(refused.errors)")
            }
        }
    }

    @Test("Of two project files, the one that is nearer to the current folder decides")
    func nearerProjectFile() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            let inner = fixture.folder.appending(path: "project")
            try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
            for (name, folder) in [("other", fixture.folder), ("staging", inner)] {
                try Data(#"{"environment":"\#(name)"}"#.utf8).write(to: folder.appending(path: ".larder.json"))
            }
            #expect(try await fixture.migrate("env", "current", in: inner).output == "staging\n")
            #expect(try await fixture.migrate("env", "current").output == "other\n")
        }
    }

    @Test("plan --use says in JSON whether it would be a switch")
    func isSwitch() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            for (name, isSwitch) in [("staging", false), ("other", true)] {
                let plan = try result(await fixture.migrate("plan", "--use", name, "--json"))
                let report = try #require(plan["switch"] as? [String: Any])
                #expect(report["isSwitch"] as? Bool == isSwitch, "\(report)")
            }
        }
    }

    @Test("env show says in words who decides that it is this one")
    func origin() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            func last(_ environment: [String: String] = [:], _ more: String...) async throws -> Substring? {
                let arguments = ["env", "show", "--origin", "--store", fixture.store.path] + more
                return try await MigrateProcess.run(arguments, environment: environment, in: fixture.folder)
                    .output.split(separator: "\n").last
            }
            #expect(try await last() == "origin: the store")
            #expect(try await last(["LARDER_ENV": "staging"]) == "origin: the variable LARDER_ENV")
            #expect(try await last(["LARDER_ENV": "x"], "--env", "staging") == "origin: the option --env")
        }
    }

    @Test("What was another environment's before is told as taken over, and what was its own is not")
    func taken() async throws {
        for isJSON in [true, false] {
            try await MigrationFixture.with { fixture in
                for (name, user) in [("old", "ada"), ("new", "bob")] {
                    _ = try await fixture.add(name)
                    #expect(try await fixture.migrate("env", "use", name, "--user", user).status == 0)
                }
                let added = try await fixture.add("new", "--succeeds", "old", isJSON ? "--json" : "--protected")
                #expect(added.status == 0, "\(added.errors)")
                guard isJSON else {
                    #expect(added.output == "added new; it took over 1 partition of old\n")
                    return
                }
                let taken = try result(added)["taken"] as? [[String: Any]]
                #expect(taken?.map { $0["user"] as? String } == ["ada"], "\(added.output)")
                let partitions = try await fixture.withDatabase { try $0.environments.partitions() }
                let names = partitions.filter { $0.user == "ada" }.map(\.name)
                #expect(taken?.compactMap { $0["partition"] as? String } == names, "\(added.output)")
            }
        }
    }

    @Test("A switch says how many mutations it gave up or carried along; a plan of none has nothing to do")
    func switched() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let none = try await fixture.migrate("plan", "--use", "staging")
            #expect(none.status == 0 && none.output == "staging, guest is the current one already\n", "\(none)")
            try await fixture.queueInCurrent(2)
            let carried = try await fixture.migrate("env", "use", "other", "--carry")
            #expect(carried.output.hasSuffix("\ncarried along: 2 mutations\n"), "\(carried)")
            let given = try await fixture.migrate("env", "use", "staging", "--discard")
            #expect(given.output.hasSuffix("\ngiven up: 2 mutations\n"), "\(given)")
        }
    }

    @Test("JSON says which environment is the current one, which is protected, and how many partitions each has")
    func listed() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("production", "--protected")
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            let list = try await fixture.migrate("env", "list", "--json").output
            let rows = #"""
                {"name":"production","isCurrent":false,"isProtected":true,"partitions":0},\#
                {"name":"staging","isCurrent":true,"isProtected":false,"partitions":1}
                """#
            let whole = #"{"larder-migrate":1,"command":"env list","result":{"environments":[\#(rows)]}}"#
            #expect(list == whole + "\n")
            for (name, isProtected) in [("production", true), ("staging", false)] {
                let shown = try result(await fixture.migrate("env", "show", name, "--json"))
                #expect(shown["isProtected"] as? Bool == isProtected)
            }
        }
    }

    @Test(
        "A switch says how many mutations and transfers it carried along, and how many it gave up",
        arguments: [("--discard", [0, 1, 0, 2]), ("--carry", [1, 0, 2, 0])])
    func carriedOrGivenUp(option: String, expected: [Int]) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.queueInCurrent(1)
            try await fixture.queueDownloads("a", "b")
            let use = try result(await fixture.migrate("env", "use", "other", option, "--json"))
            let report = try #require(use["switch"] as? [String: Any])
            let counts = ["carried", "discarded", "carriedTransfers", "discardedTransfers"].map { report[$0] as? Int }
            #expect(counts == expected)
        }
    }

    @Test("JSON names the file, or the variable, that decides on the environment")
    func originInJSON() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let project = fixture.folder.appending(path: "project")
            try FileManager.default.createDirectory(at: project, withIntermediateDirectories: false)
            try Data(#"{"environment":"staging"}"#.utf8).write(to: project.appending(path: ".larder.json"))
            func origin(_ variables: [String: String] = [:]) async throws -> [String: Any]? {
                let current = try await fixture.migrate("env", "current", "--json", environment: variables, in: project)
                return try result(current)["origin"] as? [String: Any]
            }
            let file = try await origin()
            #expect(file?["kind"] as? String == "project")
            #expect((file?["file"] as? String)?.hasSuffix("/project/.larder.json") == true)
            let variable = try await origin(["LARDER_ENV": "staging"])
            #expect(variable?["kind"] as? String == "variable" && variable?["name"] as? String == "LARDER_ENV")
        }
    }

    @Test("env show tells the environment's fingerprints: of its identity, of its data and of its storage")
    func fingerprints() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let found = try await fixture.withDatabase { try $0.environments.find("staging")?.fingerprints }
            let kept = try #require(found)
            try #require(kept.data != kept.identity && kept.data != kept.storage)
            let shown = try result(await fixture.migrate("env", "show", "staging", "--json"))
            let told = shown["fingerprints"] as? [String: String]
            #expect(told == ["identity": kept.identity, "data": kept.data, "storage": kept.storage])
        }
    }

    @Test("A switch counts in JSON the work that it leaves by state, and a plan gives the same counts")
    func countedStates() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.withDatabase { database in
                let name = try #require(try database.environments.current()?.partition?.name)
                var ids: [UUID] = []
                for number in 0..<10 {
                    let draft = MutationDraft(
                        partition: name, lane: "\(number)", content: MutationContent(document: "mutation { note }"),
                        created: Date())
                    ids.append(try await database.mutations.enqueue(draft).id)
                }
                let failure = MutationFailure(.rejected, message: "no", time: Date())
                try await database.mutations.setAside(ids[0], expecting: .pending, failure, now: Date())
                for id in ids[1..<6] {
                    let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
                    guard ids[1..<3].contains(id) else { continue }
                    try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
                }
            }
            let counts =
                #"{"answered":2,"failedTransfers":0,"inFlight":3,"pending":4,"setAside":1,"transfers":0}"#
            for verb in [["plan", "--use", "other"], ["env", "use", "other"]] {
                let outcome = try await MigrateProcess.run(verb + ["--json", "--store", fixture.store.path])
                let from = (try result(outcome)["switch"] as? [String: Any])?["from"] as? [String: Any]
                #expect(try text(from?["before"]) == counts && text(from?["after"]) == counts, "\(outcome)")
            }
        }
    }

    @Test("Adding an environment says in JSON whether it is protected", arguments: [true, false])
    func addedProtected(isProtected: Bool) async throws {
        try await MigrationFixture.with { fixture in
            let added =
                try await isProtected
                ? fixture.add("a", "--protected", "--json") : fixture.add("a", "--json")
            #expect(try result(added)["isProtected"] as? Bool == isProtected, "\(added)")
        }
    }

    @Test("JSON names no environment on the side of a switch that has none, nor as the store's where there is none")
    func noneInJSON() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let current = try result(await fixture.migrate("env", "current", "--env", "staging", "--json"))
            #expect(current["name"] as? String == "staging" && current["store"] is NSNull, "\(current)")
            let entered = try result(await fixture.migrate("env", "use", "staging", "--json"))["switch"]
            #expect((entered as? [String: Any])?["from"] is NSNull, "\(entered ?? "")")
            let left = try result(await fixture.migrate("env", "none", "--json"))["switch"]
            #expect((left as? [String: Any])?["to"] is NSNull, "\(left ?? "")")
        }
    }

    @Test("JSON names no user of a partition that was taken over from a program without environments")
    func takenWithoutUser() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let added = try result(await fixture.add("staging", "--succeeds-unnamed", "--json"))
            let taken = try #require((added["taken"] as? [[String: Any]])?.first)
            #expect(taken["user"] is NSNull, "\(added)")
        }
    }

    @Test("JSON names the user's own file, where that decides on the environment")
    func userFileInJSON() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let file = fixture.folder.appending(path: "config/larder/config.json")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(#"{"environment":"staging"}"#.utf8).write(to: file)
            let variable = ["XDG_CONFIG_HOME": fixture.folder.path + "/config"]
            let current = try result(await fixture.migrate("env", "current", "--json", environment: variable))
            let origin = try #require(current["origin"] as? [String: Any])
            #expect(origin["kind"] as? String == "user" && origin["file"] as? String == file.path, "\(origin)")
        }
    }

    @Test("env show shows the environment that its argument names, though LARDER_ENV names another")
    func shownBesideVariable() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            let shown = try await fixture.migrate(
                "env", "show", "staging", "--json", environment: ["LARDER_ENV": "other"])
            #expect(try result(shown)["name"] as? String == "staging", "\(shown)")
        }
    }
}
