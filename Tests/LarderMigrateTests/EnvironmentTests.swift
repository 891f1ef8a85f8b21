import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations
@testable import LarderRecords

@Suite(
    "Environments at the command line", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct EnvironmentVerbTests {
    @Test("Environments are added, listed, shown, and one of them is the current one")
    func listed() async throws {
        try await MigrationFixture.with { fixture in
            #expect(try await fixture.add("staging").status == 0)
            let added = try await fixture.add("production", "--protected")
            #expect(added.status == 0, "\(added.errors)")
            #expect(
                try await fixture.migrate("env", "list").output
                    == "- production protected 0 partitions\n- staging - 0 partitions\n")
            let none = try await fixture.migrate("env", "current", "--json")
            #expect(none.status == 3)
            #expect(none.errors.contains(#""code":"command.noEnvironment""#))
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            #expect(try await fixture.migrate("env", "current").output == "staging\n")
            let shown = try await fixture.migrate("env", "show", "--origin", "--json")
            let definition = try text(result(shown)["definition"])
            #expect(definition.contains(#""url":"https:\/\/staging.example\/graphql""#))
            #expect(try text(result(shown)["origin"]) == #"{"kind":"store"}"#)
        }
    }

    @Test(
        "A switch is planned by the very report that it then gives, with counts before and after",
        arguments: ["--park", "--carry", "--discard"])
    func planned(work: String) async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            _ = try await fixture.add("production")
            #expect(try await fixture.migrate("env", "use", "staging", "--guest").status == 0)
            try await fixture.queueInCurrent(3)
            let plan = try await fixture.migrate("plan", "--use", "production", work, "--json")
            #expect(plan.status == 3, "\(plan.errors)")
            #expect(try await fixture.migrate("env", "current").output == "staging\n")
            let use = try await fixture.migrate("env", "use", "production", work, "--json")
            #expect(use.status == 0, "\(use.errors)")
            let report = try text(result(use)["switch"])
            #expect(try text(result(plan)["switch"]) == report)
            #expect(
                report.contains(
                    #""before":{"answered":0,"failedTransfers":0,"inFlight":0,"pending":3,"setAside":0,"transfers":0}"#)
            )
            #expect(report.contains(#""carried":\#(work == "--carry" ? 3 : 0)"#))
            #expect(report.contains(#""discarded":\#(work == "--discard" ? 3 : 0)"#))
            try await fixture.expectSound()
        }
    }

    @Test("Leaving for none, and coming back")
    func none() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            let carried = try await fixture.migrate("env", "none", "--carry")
            #expect(carried.status == 2 && carried.errors.contains("nowhere to carry"), "\(carried.errors)")
            #expect(try await fixture.migrate("env", "current").output == "staging\n")
            #expect(try await fixture.migrate("env", "none").status == 0)
            #expect(try await fixture.migrate("env", "current").status == 3)
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            let again = try await fixture.migrate("env", "use", "staging")
            #expect(again.output == "staging, guest is the current one already\n", "\(again.errors)")
        }
    }

    @Test("Leaving for none once more succeeds, and says that none is the current one already")
    func noneAgain() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            #expect(try await fixture.migrate("env", "none").status == 0)
            let again = try await fixture.migrate("env", "none")
            #expect(again.status == 0, "\(again.errors)")
            #expect(again.output == "none is the current one already\n")
            let told = try await fixture.migrate("env", "none", "--json")
            let change = try text(result(told)["switch"])
            #expect(change.contains(#""isSwitch":false"#), "\(change)")
            #expect(change.contains(#""from":null"#) && change.contains(#""to":null"#), "\(change)")
        }
    }

    @Test("env use and env none are not refused where LARDER_ENV is set and empty")
    func emptyVariable() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let empty = ["LARDER_ENV": ""]
            let used = try await fixture.migrate("env", "use", "staging", environment: empty)
            #expect(used.status == 0, "\(used.errors)")
            #expect(try await fixture.migrate("env", "current").output == "staging\n")
            let left = try await fixture.migrate("env", "none", environment: empty)
            #expect(left.status == 0, "\(left.errors)")
            #expect(try await fixture.migrate("env", "current").status == 3)
        }
    }

    @Test("Flag goes before variable, variable before project file, that before the user's, that before the store")
    func precedence() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["a", "b", "c", "d", "e"] { _ = try await fixture.add(name) }
            #expect(try await fixture.migrate("env", "use", "e").status == 0)
            let project = fixture.folder.appending(path: "project")
            let deep = project.appending(path: "deep/er")
            try FileManager.default.createDirectory(at: deep, withIntermediateDirectories: true)
            let user = fixture.folder.appending(path: "config/larder")
            try FileManager.default.createDirectory(at: user, withIntermediateDirectories: true)
            var variables = ["XDG_CONFIG_HOME": fixture.folder.path + "/config"]
            func current(_ more: String...) async throws -> String {
                let arguments = ["env", "show", "--origin", "--json", "--store", fixture.store.path] + more
                let shown = try await MigrateProcess.run(arguments, environment: variables, in: deep)
                let found = try result(shown)
                return "\(found["name"] ?? "") \(try text((found["origin"] as? [String: Any])?["kind"]))"
            }
            #expect(try await current() == #"e "store""#)
            try Data(#"{"environment":"d"}"#.utf8).write(to: user.appending(path: "config.json"))
            #expect(try await current() == #"d "user""#)
            // A relative path would lead elsewhere from each folder, and stands for nothing.
            variables = ["XDG_CONFIG_HOME": "../../../config", "HOME": fixture.folder.path]
            #expect(try await current() == #"e "store""#)
            let home = fixture.folder.appending(path: ".config/larder")
            try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
            try Data(#"{"environment":"a"}"#.utf8).write(to: home.appending(path: "config.json"))
            #expect(try await current() == #"a "user""#)
            variables = ["XDG_CONFIG_HOME": "", "HOME": "../../.."]
            #expect(try await current() == #"e "store""#)
            variables = ["XDG_CONFIG_HOME": fixture.folder.path + "/config"]
            try Data(#"{"environment":"c"}"#.utf8).write(to: project.appending(path: ".larder.json"))
            #expect(try await current() == #"c "project""#)
            variables["LARDER_ENV"] = ""
            #expect(try await current() == #"c "project""#)
            variables["LARDER_ENV"] = "b"
            #expect(try await current() == #"b "variable""#)
            #expect(try await current("--env", "a") == #"a "flag""#)
        }
    }

    @Test("A variable that names an unknown environment is a miss, and said where the environments are listed")
    func unknownVariable() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let unknown = ["LARDER_ENV": "stagin"]
            for verb in ["current", "show"] {
                let outcome = try await fixture.migrate("env", verb, "--json", environment: unknown)
                #expect(outcome.status == 3 && outcome.errors.contains(#""code":"operations.unknownEnvironment""#))
            }
            let list = try await fixture.migrate("env", "list", environment: unknown)
            #expect(list.status == 0 && list.output == "- staging - 0 partitions\n")
            #expect(list.errors.contains("knows no environment stagin"))
        }
    }

    @Test("env list marks the environment that is the store's current one, also where a variable names another")
    func listedBesideVariable() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let variable = ["LARDER_ENV": "other"]
            let list = try await fixture.migrate("env", "list", environment: variable)
            #expect(list.output == "- other - 0 partitions\n* staging - 1 partition\n", "\(list)")
            let told = try await result(fixture.migrate("env", "list", "--json", environment: variable))
            let environments = try #require(told["environments"] as? [[String: Any]])
            #expect(environments.map { $0["isCurrent"] as? Bool } == [false, true])
        }
    }

    @Test("An import is refused where the variable says another environment than the one that it would go to")
    func importing() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            _ = try await fixture.add("production")
            #expect(try await fixture.migrate("env", "use", "production").status == 0)
            let schema = fixture.folder.appending(path: "schema.graphqls")
            try Data("type Query { number: Int }".utf8).write(to: schema)
            let outcome = try await fixture.migrate(
                "import", "--from", "apollo", "nowhere", "--schema", schema.path, "--json",
                environment: ["LARDER_ENV": "staging"])
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"command.decidedElsewhere""#), "\(outcome.errors)")
        }
    }

    @Test("env use is refused while the variable is set, also where it names the environment that is to be entered")
    func refusedForSameName() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let outcome = try await fixture.migrate(
                "env", "use", "staging", "--json", environment: ["LARDER_ENV": "staging"])
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"command.decidedElsewhere""#), "\(outcome.errors)")
            #expect(try await fixture.migrate("env", "current").status == 3)
        }
    }

    @Test("A switch is refused while a variable decides", arguments: [["use", "staging"], ["none"]])
    func refused(arguments: [String]) async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let outcome = try await MigrateProcess.run(
                ["env"] + arguments + ["--store", fixture.store.path, "--json"],
                environment: ["LARDER_ENV": "production"])
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"command.decidedElsewhere""#))
            #expect(try await fixture.migrate("env", "current").status == 3)
        }
    }

    @Test(
        "A name with a path separator, or that is none, is refused and nothing is written",
        arguments: ["../prod", "a/b", "a\\b", "..", "", "a b", "é", String(repeating: "x", count: 65)])
    func names(name: String) async throws {
        try await MigrationFixture.with { fixture in
            let outcome = try await fixture.add(name, "--json")
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(#""code":"larder.environment""#), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path))
            _ = try await fixture.add("staging")
            let variable = try await fixture.migrate("env", "current", environment: ["LARDER_ENV": "../x"])
            #expect(variable.status == 2)
        }
    }

    @Test("An environment is not removed while it is the current one, nor while it has data")
    func removed() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            for _ in 0..<2 {
                let outcome = try await fixture.migrate("env", "remove", "staging", "--json")
                #expect(outcome.status == 4)
                #expect(outcome.errors.contains(#""code":"operations.environmentInUse""#))
                #expect(try await fixture.migrate("env", "none").status == 0)
            }
            #expect(try await fixture.migrate("env", "remove", "other").status == 0)
            let unknown = try await fixture.migrate("env", "remove", "other", "--json")
            #expect(unknown.status == 3)
            #expect(unknown.errors.contains(#""code":"operations.unknownEnvironment""#))
        }
    }

    @Test("A cache that was filled before any environment was named is the first one's that succeeds it")
    func unnamedCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path + "/larder.sqlite"))
            let added = try await fixture.add("staging", "--succeeds-unnamed", "--json")
            #expect(added.status == 0, "\(added.errors)")
            #expect(try (result(added)["taken"] as? [Any])?.count == 1)
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            #expect(try await fixture.number() == 7)
            #expect(try await fixture.migrate("env", "list").output == "* staging - 1 partition\n")
            try await fixture.expectSound()
        }
    }

    @Test("A cache that is another partition's is left out of a backup, and named")
    func foreignCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(1)
            let records = fixture.store.appending(path: "records")
            try FileManager.default.copyItem(
                at: records.appending(path: Store.unnamedPartition), to: records.appending(path: "0123456789abcdef"))
            let outcome = try await fixture.migrate("backup", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["omitted"]) == #"["0123456789abcdef"]"#)
        }
    }

    @Test("A protected environment wants its name repeated before anything is destroyed")
    func protected() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("production", "--protected")
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "production").status == 0)
            try await fixture.queueInCurrent(1)
            let backup = try await fixture.makeBackup().path
            for arguments in [
                ["env", "use", "staging", "--discard"], ["env", "none", "--discard"], ["restore", backup],
                ["repair", "--write"], ["env", "remove", "production"],
                ["env", "add", "production", "--url", "https://x.example"],
            ] {
                let all = arguments + ["--store", fixture.store.path, "--json"]
                for confirmation in [[], ["--confirm", "staging"]] {
                    let outcome = try await MigrateProcess.run(all + confirmation)
                    #expect(outcome.status == 4, "\(arguments): \(outcome.errors)")
                    #expect(outcome.errors.contains(#""code":"command.notConfirmed""#))
                }
            }
            #expect(try await fixture.restore(URL(filePath: backup), "--confirm", "production").status == 0)
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
        }
    }

    @Test("Taking over an environment's data wants it to be there, and its name repeated where it is protected")
    func successor() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("production", "--protected")
            #expect(try await fixture.migrate("env", "use", "production", "--user", "ada").status == 0)
            let misspelt = try await fixture.add("next", "--succeeds", "prodction", "--json")
            #expect(misspelt.status == 3, "\(misspelt.errors)")
            #expect(misspelt.errors.contains(#""code":"operations.unknownEnvironment""#))
            let unconfirmed = try await fixture.add("next", "--succeeds", "production", "--confirm", "next", "--json")
            #expect(unconfirmed.status == 4, "\(unconfirmed.errors)")
            #expect(unconfirmed.errors.contains(#""code":"command.notConfirmed""#))
            #expect(try await fixture.migrate("env", "list").output == "* production protected 1 partition\n")
            let done = try await fixture.add("next", "--succeeds", "production", "--confirm", "production", "--json")
            #expect(done.status == 0, "\(done.errors)")
            let taken = try #require(try result(done)["taken"] as? [[String: Any]])
            #expect(taken.map { $0["user"] as? String } == ["ada"])
            #expect(
                try await fixture.migrate("env", "list").output
                    == "* next - 1 partition\n- production protected 0 partitions\n")
        }
    }

    @Test("Where two protected environments are concerned, the name of each has to be repeated")
    func bothProtected() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["old", "new"] { _ = try await fixture.add(name, "--protected") }
            #expect(try await fixture.migrate("env", "use", "old").status == 0)
            let succeeding = [
                "env", "add", "new", "--url", "https://staging.example/graphql", "--succeeds", "old", "--protected",
                "--json", "--store", fixture.store.path,
            ]
            for name in ["old", "new"] {
                let one = try await MigrateProcess.run(succeeding + ["--confirm", name])
                #expect(one.status == 4 && one.errors.contains(#""code":"command.notConfirmed""#), "\(one.errors)")
            }
            let both = try await MigrateProcess.run(succeeding + ["--confirm", "old", "--confirm", "new"])
            #expect(both.status == 0, "\(both.errors)")
            let list = try await fixture.migrate("env", "list").output
            #expect(list == "* new protected 1 partition\n- old protected 0 partitions\n")
        }
    }

    @Test("A name and --env at once are refused")
    func namedTwice() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("a")
            _ = try await fixture.add("b")
            let outcome = try await fixture.migrate("env", "show", "a", "--env", "b", "--json")
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(outcome.errors.contains(#""code":"command.usage""#))
        }
    }

    @Test("Configuration files of other tools define an environment; their secrets are neither kept nor shown")
    func file() async throws {
        try await MigrationFixture.with { fixture in
            let file = fixture.folder.appending(path: "awsconfiguration.json")
            try Data(
                #"""
                {"AppSync":{"Default":{"ApiUrl":"https://abc.appsync-api.eu-west-1.amazonaws.com/graphql",
                "Region":"eu-west-1","AuthMode":"API_KEY","ApiKey":"da2-secretsecretsecretsecret"}}}
                """#.utf8
            ).write(to: file)
            let outcome = try await fixture.migrate("env", "add", "staging", "--from", file.path)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let shown = try await fixture.migrate("env", "show", "staging")
            #expect(shown.output.contains("abc.appsync-api.eu-west-1.amazonaws.com"))
            let stored = try Data(contentsOf: fixture.store.appending(path: "larder.sqlite"))
            #expect(!shown.output.contains("secret") && stored.range(of: Data("da2-secret".utf8)) == nil)
        }
    }

    @Test("A switch that carries mutations along counts them in JSON on both sides, before it and after it")
    func carriedCounts() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "production"] { _ = try await fixture.add(name) }
            #expect(try await fixture.migrate("env", "use", "staging", "--guest").status == 0)
            try await fixture.queueInCurrent(3)
            let use = try result(await fixture.migrate("env", "use", "production", "--carry", "--json"))
            let report = try #require(use["switch"] as? [String: Any])
            func pending(_ side: String, _ time: String) -> Int? {
                let counts = (report[side] as? [String: Any])?[time] as? [String: Any]
                return counts?["pending"] as? Int
            }
            #expect(pending("from", "before") == 3 && pending("from", "after") == 0, "\(report)")
            #expect(pending("to", "before") == 0 && pending("to", "after") == 3, "\(report)")
        }
    }

    @Test("plan --use plans a switch from the store's current environment, whatever LARDER_ENV names")
    func plannedBesideVariable() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let plan = try await fixture.migrate(
                "plan", "--use", "other", "--json", environment: ["LARDER_ENV": "other"])
            #expect(plan.status == 3, "\(plan.errors)")
            let report = try #require(try result(plan)["switch"] as? [String: Any])
            #expect((report["from"] as? [String: Any])?["environment"] as? String == "staging", "\(report)")
        }
    }

    @Test("The name to be repeated is that of the protected current environment, though LARDER_ENV names another")
    func confirmedBesideVariable() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("production", "--protected")
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "production").status == 0)
            let variable = ["LARDER_ENV": "staging"]
            let refused = try await fixture.migrate("repair", "--write", "--json", environment: variable)
            #expect(refused.status == 4 && refused.errors.contains(#""code":"command.notConfirmed""#), "\(refused)")
            let confirmed = try await fixture.migrate(
                "repair", "--write", "--confirm", "production", environment: variable)
            #expect(confirmed.status == 0, "\(confirmed.errors)")
        }
    }

    @Test("A switch counts in JSON the transfers that are left to do, and apart from them those that have failed")
    func countedTransfers() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let downloads = try await fixture.queueDownloads("a", "b", "c")
            try await fixture.withDatabase { database in
                let begun = try await database.transfers.begin(downloads[0], owner: "test", now: Date())
                let failure = TransferFailure(code: "object.accessDenied", message: "no", time: Date())
                try await database.transfers.fail(try #require(begun).attempt, failure, now: Date())
            }
            let use = try result(await fixture.migrate("env", "use", "other", "--json"))
            let from = (use["switch"] as? [String: Any])?["from"] as? [String: Any]
            for time in ["before", "after"] {
                let counts = from?[time] as? [String: Any]
                #expect(counts?["transfers"] as? Int == 2 && counts?["failedTransfers"] as? Int == 1, "\(use)")
            }
        }
    }
}
