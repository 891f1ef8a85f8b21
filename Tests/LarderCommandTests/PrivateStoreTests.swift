import Foundation
import LarderTestSupport
import Testing

@Suite("Whose the files are that the tools make", .timeLimit(.minutes(10)))
struct PrivateStoreTests {
    /// What others may do with files, by path.
    private func exposed(in folder: String) throws -> [String: String] {
        var found: [String: String] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
            let attributes = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)
            let mode = try #require(attributes[.posixPermissions] as? Int)
            let isFolder = attributes[.type] as? FileAttributeType == .typeDirectory
            if mode != (isFolder ? 0o700 : 0o600) { found[name] = String(mode, radix: 8) }
        }
        return found
    }

    @Test("Whatever the process's mask, they are this user's alone", arguments: ["000", "022", "277", "777"])
    func made(mask: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let room = fixture.path("room")
            let store = room + "/above/store"
            try FileManager.default.createDirectory(atPath: room, withIntermediateDirectories: true)
            let migrate = LarderProcess.executable("larder-migrate").path
            let options =
                try fixture.operation("List", variables: #"{"n":2}"#) + ["--response", fixture.path("list.json")]
            let outcome = try await LarderProcess.run(
                shell: """
                    umask \(mask) && "$@" && shift && set -- --store '\(store)' &&
                    '\(LarderProcess.executable().path)' compact "$@" &&
                    '\(migrate)' env add a --url https://127.0.0.1/graphql "$@" && '\(migrate)' env use a "$@" &&
                    '\(migrate)' backup "$@" && '\(migrate)' repair --write "$@" &&
                    '\(migrate)' restore "$@" '\(store).backups/'*
                    """,
                ["ingest", "--store", store] + options)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try exposed(in: room) == [:])
            #expect(FileManager.default.fileExists(atPath: store + "/larder.sqlite"))
        }
    }

    /// Gives everybody what the owner may.
    private func expose(_ folder: String) async throws {
        let outcome = try await LarderProcess.run(shell: "chmod -R go=rX '\(folder)'", [])
        try #require(outcome.status == 0)
    }

    @Test(
        "A store that everybody may read is a finding of info and check, which change nothing",
        arguments: [
            ["info"], ["check"],
        ])
    func found(verb: [String]) async throws {
        try await CommandFixture.withStore { fixture in
            let sound = try await fixture.larder(verb + ["--json"])
            #expect(sound.output.contains(#""exposed":[]"#))
            #expect(sound.errors == "")
            try await expose(fixture.store)
            let told = try await fixture.larder(verb)
            #expect(told.status == 0)
            #expect(told.errors.contains("Other users may use . (755), records (755)"), "\(told.errors)")
            let json = try await fixture.larder(verb + ["--json"])
            #expect(json.status == 0)
            #expect(json.output.contains(#""exposed":[{"path":".","mode":"755"},"#), "\(json.output)")
            #expect(json.output.contains(#"{"path":"records/main/1/data.mdb","mode":"644"}"#), "\(json.output)")
            #expect(try exposed(in: fixture.store)["records/main/1/data.mdb"] == "644")
        }
    }

    @Test("It is a finding of validate as well")
    func validated() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.upload()
            try await expose(fixture.store)
            let told = try await LarderProcess.run(
                program: "larder-migrate", ["validate", "--json", "--store", fixture.store])
            #expect(told.status == 0, "\(told.errors)")
            #expect(told.output.contains(#"{"path":"larder.sqlite","mode":"644"}"#), "\(told.output)")
        }
    }

    @Test("Where check and validate find damage, they tell beside it what others may use")
    func damaged() async throws {
        try await CommandFixture.withStore { fixture in
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            try Data("This is no cache.".utf8).write(to: file)
            try await expose(fixture.store)
            for (program, verb) in [("larder", "check"), ("larder-migrate", "validate")] {
                let outcome = try await LarderProcess.run(program: program, [verb, "--json", "--store", fixture.store])
                #expect(outcome.status == 5 && outcome.errors.contains(#""code":"command.findings""#), "\(outcome)")
                #expect(outcome.errors.contains(#""exposed":[{"path":".","mode":"755"},"#), "\(outcome.errors)")
            }
        }
    }

    @Test("A verb that writes narrows it, and says so once")
    func narrowed() async throws {
        try await CommandFixture.withStore { fixture in
            try await expose(fixture.store)
            let first = try await fixture.larder("compact")
            #expect(first.status == 0)
            #expect(first.errors.contains("Other users could use . (755)"), "\(first.errors)")
            #expect(try exposed(in: fixture.store) == [:])
            #expect(try await fixture.larder("compact").errors == "")
            try await expose(fixture.store)
            let second = try await LarderProcess.run(program: "larder-migrate", ["backup", "--store", fixture.store])
            #expect(second.status == 0, "\(second.errors)")
            #expect(second.errors.contains("Other users could use . (755)"), "\(second.errors)")
            #expect(try exposed(in: fixture.store) == [:])
        }
    }

    @Test("Verbs that write rows, or open the store as a program does, make an exposed store private too")
    func narrowedByOthers() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload().text
            let operation = fixture.folder.appending(path: "photo.graphql")
            try Data("{ photo(id: 1) { id title } }".utf8).write(to: operation)
            for verb in [["transfers", "pause", id, "--write"], ["pin", "shown", "--operation", operation.path]] {
                try await expose(fixture.store)
                let outcome = try await LarderProcess.run(verb + ["--store", fixture.store])
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.errors.contains("Other users could use . (755)"), "\(verb): \(outcome.errors)")
                #expect(try exposed(in: fixture.store) == [:], "\(verb)")
            }
        }
    }

    @Test("validate says in words, too, which files other users may use")
    func validatedInWords() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.upload()
            try await expose(fixture.store)
            let told = try await LarderProcess.run(program: "larder-migrate", ["validate", "--store", fixture.store])
            #expect(told.status == 0 && told.errors.contains("Other users may use . (755)"), "\(told.errors)")
        }
    }
}
