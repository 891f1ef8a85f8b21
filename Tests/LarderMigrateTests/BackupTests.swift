import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderOperations

@Suite("Backups", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"), .timeLimit(.minutes(10)))
struct BackupTests {
    @Test("A backup holds the database, the caches and what vouches for them, and a new folder gets it whole")
    func whole() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(3)
            let outcome = try await fixture.migrate("backup", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let backup = try fixture.backup()
            #expect(
                try FileManager.default.subpathsOfDirectory(atPath: backup.path).sorted() == [
                    "larder.sqlite", "manifest.json", "records", "records/main", "records/main/data.mdb",
                ])
            let other = MigrationFixture(folder: fixture.folder.appending(path: "elsewhere"))
            let restored = try await other.restore(backup)
            #expect(restored.status == 0, "\(restored.errors)")
            #expect(try await other.number() == 7)
            #expect(try await other.mutations() == ids)
            try await other.expectSound()
            // Numbers that the first store has given since the backup are not given here.
            let next = try await other.queue(1, named: "later")
            let sequences = try await other.withDatabase { try $0.mutations.list().map(\.sequence) }
            #expect(next.count == 1 && sequences[3] > 1 << 20)
        }
    }

    @Test("A backup that is made while other processes write is whole")
    func whileWriting() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let user = try MigrateProcess.Running("larder-crash", [fixture.store.path, "use"])
            defer { user.kill() }
            for round in 0..<5 {
                try await user.wait { $0.count(where: { $0.hasPrefix("queued") }) > 10 * round }
                let known = user.lines.filter { $0.hasPrefix("queued ") }.map { $0.dropFirst("queued ".count) }
                let outcome = try await fixture.migrate("backup", "--json")
                #expect(outcome.status == 0, "\(outcome.errors)")
                let backup = URL(filePath: try #require(try result(outcome)["backup"] as? String))
                let other = MigrationFixture(folder: fixture.folder.appending(path: "elsewhere\(round)"))
                #expect(try await other.restore(backup).status == 0)
                let restored = Set(try await other.mutations().map(\.uuidString))
                #expect(known.allSatisfy { restored.contains(String($0)) }, "round \(round)")
                try await other.expectSound("round \(round)")
            }
            #expect(user.process.isRunning)
        }
    }

    @Test("Backups are listed, verified and pruned: the newest stay, and what is another store's")
    func care() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let other = MigrationFixture(folder: fixture.folder.appending(path: "other"))
            try await other.queue(1)
            let foreign = try await other.migrate("backup", "--to", fixture.backups.path)
            #expect(foreign.status == 0, "\(foreign.errors)")
            let made = try await fixture.makeBackups(3)
            let list = try await fixture.migrate("backup", "list").output.split(separator: "\n")
            #expect(
                list.count == 4
                    && Set(made).isSubset(of: list.compactMap { $0.split(separator: " ").first.map(String.init) }))
            let told = try await fixture.migrate("backup", "prune", "--keep", "1")
            #expect(told.status == 0 && told.output.split(separator: "\n").count == 2, "\(told.errors)")
            #expect(told.errors.hasSuffix("nothing was removed; --write does it\n"), "\(told.errors)")
            #expect(made.allSatisfy { FileManager.default.fileExists(atPath: $0) })
            let pruned = try await fixture.migrate("backup", "prune", "--keep", "1", "--write")
            #expect(pruned.status == 0, "\(pruned.errors)")
            #expect(made.filter { FileManager.default.fileExists(atPath: $0) }.count == 1)
            #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.backups.path).count == 2)
            let sound = try await fixture.migrate("backup", "verify")
            #expect(sound.status == 0 && sound.output.split(separator: "\n").count == 2, "\(sound.errors)")
            let left = try #require(made.first { FileManager.default.fileExists(atPath: $0) })
            try Data("x".utf8).write(to: URL(filePath: left).appending(path: "larder.sqlite"))
            let damaged = try await fixture.migrate("backup", "verify", left)
            #expect(damaged.status == 5)
            #expect(damaged.errors.contains("hint: 'larder-migrate backup verify' tells which"), "\(damaged.errors)")
            let json = try await fixture.migrate("backup", "verify", left, "--json")
            #expect(json.output.contains(#""hint":"'larder-migrate backup verify' tells"#), "\(json.output)")
        }
    }

    @Test("Backups stand in the order in which they were made, whatever their folders are called")
    func order() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            var made: [String] = []
            for year in [2023, 2021, 2022] { made.append(try await fixture.makeBackup(ofYear: year)) }
            // What a killed backup has left is none.
            try FileManager.default.copyItem(atPath: made[0], toPath: fixture.backups.path + "/.draft-0")
            let list = try await fixture.migrate("backup", "list").output.split(separator: "\n")
            let listed = list.compactMap { $0.split(separator: " ").first.map(String.init) }
            #expect(listed == [made[1], made[2], made[0]])
            #expect(list.allSatisfy { $0.contains(/T00:00:00Z \(\d+ d ago\)/) }, "\(list)")
            let pruned = try result(try await fixture.migrate("backup", "prune", "--keep", "1", "--json"))
            #expect(pruned["remaining"] as? [String] == [made[0]])
            #expect(try await fixture.migrate("backup", "prune", "--keep", "0").status == 2)
        }
    }

    @Test("prune says in JSON which backups it chooses, and whether it has removed them")
    func pruned() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let made = try await fixture.makeBackups(2)
            for (option, isWritten) in [([], false), (["--write"], true)] as [([String], Bool)] {
                let arguments = ["backup", "prune", "--keep", "1", "--json", "--store", fixture.store.path]
                let told = try result(try await MigrateProcess.run(arguments + option))
                #expect(told["isWritten"] as? Bool == isWritten)
                let (pruned, remaining) = (told["pruned"] as? [String], told["remaining"] as? [String])
                #expect(Set((pruned ?? []) + (remaining ?? [])) == Set(made) && pruned?.count == 1)
            }
        }
    }

    @Test("Where no backup is to go, prune removes none and names no --write")
    func prunesNothing() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let made = try await fixture.makeBackup()
            for option in [[], ["--write"]] as [[String]] {
                let arguments = ["backup", "prune", "--keep", "1", "--store", fixture.store.path]
                let told = try await MigrateProcess.run(arguments + option)
                #expect(told.status == 0 && told.output.trimmingCharacters(in: .newlines) == "", "\(told)")
                #expect(!told.errors.contains("--write"), "\(told.errors)")
                #expect(FileManager.default.fileExists(atPath: made.path))
            }
        }
    }

    @Test("Where one of the backups that are to stay is damaged, none is removed")
    func prunesNone() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let made = try await fixture.makeBackups(3)
            try Data("x".utf8).write(to: URL(filePath: made[2]).appending(path: "larder.sqlite"))
            let pruned = try await fixture.migrate("backup", "prune", "--keep", "1", "--write", "--json")
            #expect(pruned.status == 2)
            #expect(pruned.errors.contains(#""code":"operations.damagedBackup""#), "\(pruned.errors)")
            #expect(made.allSatisfy { FileManager.default.fileExists(atPath: $0) })
        }
    }

    @Test("Of several backups that are damaged each is named, and what to do about them is told once")
    func damagedTogether() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            for _ in 0..<2 {
                let backup = try await fixture.makeBackups(1)[0]
                try Data("x".utf8).write(to: URL(filePath: backup).appending(path: "larder.sqlite"))
            }
            let outcome = try await fixture.migrate("backup", "verify")
            #expect(outcome.status == 5)
            let lines = outcome.errors.split(separator: "\n")
            #expect(lines.count { $0.contains(" hint: ") } == 1 && lines.count == 3, "\(outcome.errors)")
        }
    }

    @Test("verify names in JSON the sound backups as verified, and the damaged ones as damaged")
    func verifiedInJSON() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let made = try await fixture.makeBackups(3)
            try Data("x".utf8).write(to: URL(filePath: made[1]).appending(path: "larder.sqlite"))
            try Data("x".utf8).write(to: URL(filePath: made[2]).appending(path: "manifest.json"))
            let told = try result(await fixture.migrate("backup", "verify", "--json"))
            let damaged = told["damaged"] as? [[String: Any]]
            #expect(told["verified"] as? [String] == [made[0]], "\(told)")
            #expect(Set(damaged?.compactMap { $0["backup"] as? String } ?? []) == Set(made[1...]), "\(told)")
        }
    }

    @Test("Where there are no backups none is verified; a folder or a store that is not there has no list either")
    func none() async throws {
        try await MigrationFixture.with { fixture in
            for verb in ["list", "verify"] {
                let noStore = try await fixture.migrate("backup", verb)
                #expect(noStore.status == 1 && noStore.errors.contains("There is no store at"), "\(noStore.errors)")
                let noFolder = try await fixture.migrate("backup", verb, "--backups", fixture.folder.path + "/none")
                #expect(noFolder.status == 2 && noFolder.errors.contains("there is no such folder"))
                let tooLong = String(repeating: "n", count: 300)
                let unseen = try await fixture.migrate("backup", verb, "--backups", tooLong, "--json")
                #expect(unseen.status == 2 && unseen.errors.contains("command.file"), "\(unseen.errors)")
            }
            try await fixture.queue(1)
            let list = try await fixture.migrate("backup", "list")
            #expect(list.status == 0 && list.output == "" && list.errors.contains("there are no backups at"))
            let verified = try await fixture.migrate("backup", "verify", "--json")
            #expect(verified.status == 3 && verified.errors.contains(#""code":"command.noBackup""#))
            // The backups of a store that was lost can be looked at.
            _ = try await fixture.makeBackup()
            try FileManager.default.removeItem(at: fixture.store)
            #expect(try await fixture.migrate("backup", "verify").status == 0)
        }
    }

    @Test("A backup of another store is refused, and changes nothing")
    func foreign() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let other = MigrationFixture(folder: fixture.folder.appending(path: "other"))
            try await other.write(8)
            // No number is given to a mutation in both: that is another reason.
            try await other.settle(try await other.queue(2)[0])
            #expect(try await other.migrate("backup").status == 0)
            let outcome = try await fixture.restore(try other.backup(), "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.foreignBackup""#))
            #expect(try await fixture.number() == 7)
            #expect(try await fixture.mutations().count == 1)
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test(
        "A backup whose files were changed is refused, with the file and both checksums",
        arguments: ["larder.sqlite", "records/main/data.mdb"])
    func damaged(file: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let path = backup.appending(path: file)
            var bytes = try Data(contentsOf: path)
            bytes[bytes.count / 2] ^= 4
            try bytes.write(to: path)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(#""code":"operations.damagedBackup""#))
            #expect(outcome.errors.contains(file))
            try FileManager.default.removeItem(at: path)
            #expect(try await fixture.restore(backup, "--json").status == 2)
            #expect(try fixture.leftovers() == [])
            try await fixture.expectSound()
        }
    }

    @Test("A manifest that has a cache outside of the backup is refused, though the file is as it says")
    func cacheElsewhere() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let file = "records/main/data.mdb"
            try FileManager.default.copyItem(
                at: backup.appending(path: file), to: fixture.folder.appending(path: "elsewhere.mdb"))
            let manifest = backup.appending(path: "manifest.json")
            let text = String(decoding: try Data(contentsOf: manifest), as: UTF8.self)
            try Data(text.replacing(file, with: "../../elsewhere.mdb").utf8).write(to: manifest)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains(#""code":"operations.damagedBackup""#), "\(outcome.errors)")
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test("A manifest that cannot be read is told as that, and one that is not there as no backup")
    func unreadableManifest() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let backup = fixture.folder.appending(path: "backup")
            let manifest = backup.appending(path: "manifest.json")
            // A folder of that name cannot be read as a file.
            try FileManager.default.createDirectory(at: manifest, withIntermediateDirectories: true)
            let unreadable = try await fixture.restore(backup, "--json")
            #expect(unreadable.status != 0 && !unreadable.errors.contains("is it a backup?"), "\(unreadable.errors)")
            try FileManager.default.removeItem(at: manifest)
            let missing = try await fixture.restore(backup, "--json")
            #expect(missing.status == 2 && missing.errors.contains("is it a backup?"), "\(missing.errors)")
        }
    }

    @Test(
        "A manifest that is none, of a newer format, or that leads out of the backup is refused",
        arguments: [
            ("", 2), ("[]", 2), (#"{"larder-backup":1}"#, 2), (#"{"larder-backup":2}"#, 4),
            (#"{"larder-backup":1,"created":"2026-01-01T00:00:00Z","files":[],"partitions":[{"name":"../../x"}]}"#, 2),
            (#"{"larder-backup":1,"created":"2026-01-01T00:00:00Z","files":[],"partitions":[{"name":"a/b"}]}"#, 2),
            (#"{"larder-backup":1,"created":"2026-01-01T00:00:00Z","files":[],"partitions":[{"name":".."}]}"#, 2),
            (
                #"""
                {"larder-backup":1,"created":"2026-01-01T00:00:00Z","files":[{"path":"../x","size":1,"sha256":"a"}],
                "partitions":[]}
                """#, 2
            ),
        ])
    func manifest(text: String, status: Int32) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let backup = fixture.folder.appending(path: "backup")
            try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: true)
            try Data(text.utf8).write(to: backup.appending(path: "manifest.json"))
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == status, "\(outcome.errors)")
            #expect(outcome.errors.contains(status == 4 ? "operations.newerFormat" : "operations.damagedBackup"))
            #expect(try await fixture.number() == 7)
        }
    }

    @Test("A manifest whose files have a size that no file has is refused", arguments: [[-1], [.max, 1]])
    func impossibleSizes(sizes: [Int]) async throws {
        try await withTemporaryFolder { folder in
            let names = sizes.indices.map { "p\($0)" }
            let partitions = names.map { #"{"name":"\#($0)","cache":"records/\#($0)/data.mdb"}"# }
            let files = zip(names, sizes).map {
                #"{"path":"records/\#($0)/data.mdb","size":\#($1),"sha256":"a"}"#
            }
            let text = #"""
                {"larder-backup":1,"created":"2026-01-01T00:00:00Z","partitions":[\#(partitions.joined(separator: ","))],
                "files":[\#(files.joined(separator: ","))]}
                """#
            try Data(text.utf8).write(to: folder.appending(path: "manifest.json"))
            let error = #expect(throws: LarderError.self) { try StoreBackup(at: folder) }
            #expect(error?.code == .operationsDamagedBackup)
        }
    }

    @Test("Where there is no backup, that is said")
    func nothing() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let outcome = try await fixture.restore(fixture.folder.appending(path: "nowhere"), "--json")
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("is it a backup?"))
        }
    }

    @Test(
        "A disk that is full ends a backup with an error, and nothing of it stays",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: [4_096, 40_000, 90_000])
    func fullDisk(bytes: Int) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(20)
            try await withSmallVolume(bytes) { volume in
                let outcome = try await fixture.migrate("backup", "--json", "--to", volume.path)
                #expect(outcome.status == 1)
                #expect(
                    outcome.errors.contains(#""code":"operations.full""#)
                        || outcome.errors.contains(#""code":"records.full""#), "\(outcome.errors)")
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == [])
            }
            try await fixture.expectSound()
        }
    }

    @Test("Every file of a backup is on the disk when it returns, with its name and those of all its folders")
    func durable() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let synced = Mutex<Set<String>>([])
            var options = Store.Options()
            options.files = FileSystem { call in
                if [.synchronize, .synchronizeFolder].contains(call.kind) {
                    synced.withLock { _ = $0.insert(URL(filePath: call.path).standardizedFileURL.path) }
                }
                return nil
            }
            var (draft, before) = (URL(filePath: "/"), Set<String>())
            _ = try StoreBackup.make(of: fixture.store, into: fixture.backups, options: options) { moment in
                if moment == .named { before = synced.withLock { $0 } }
                guard moment == .written else { return }
                let names = try FileManager.default.contentsOfDirectory(atPath: fixture.backups.path)
                draft = fixture.backups.appending(path: try #require(names.first))
                let made = synced.withLock { $0 }
                for name in ["larder.sqlite", "manifest.json", "records/main/data.mdb", "records/main", "records"] {
                    #expect(made.contains(draft.appending(path: name).standardizedFileURL.path), "\(name)")
                }
                #expect(made.contains(draft.standardizedFileURL.path))
            }
            #expect(before.contains(fixture.backups.standardizedFileURL.path))
        }
    }

    @Test(
        "A store on a volume that cannot be written, so that nobody can lock it, is backed up all the same",
        .enabled(if: canMount, "may not mount a tmpfs"))
    func unlockable() async throws {
        try await MigrationFixture.with { other in
            try await withSmallVolume(8 << 20) { volume in
                let fixture = MigrationFixture(folder: volume)
                try await fixture.write(7)
                let ids = try await fixture.queue(2)
                try setReadOnly(true, volume)
                defer { try? setReadOnly(false, volume) }
                let outcome = try await fixture.migrate("backup", "--json", "--to", other.backups.path)
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(try await other.restore(try other.backup()).status == 0)
                #expect(try await other.number() == 7)
                #expect(try await other.mutations() == ids)
            }
        }
    }

    @Test("A cache that is damaged is left out of a backup, and named")
    func damagedCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            try fixture.damageCache()
            let outcome = try await fixture.migrate("backup", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["omitted"]) == #"["main"]"#)
        }
    }

    @Test("The manifest of a backup says why a cache is left out")
    func manifestOfOmitted() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.damageCache()
            let backup = try StoreBackup(at: try await fixture.makeBackup())
            let partition = try #require(backup.manifest.partitions.first)
            #expect(partition.name == "main" && partition.cache == nil)
            #expect(partition.omitted?.isEmpty == false)
        }
    }

    @Test(
        "A killed backup leaves the store as it is, and no backup or a whole one",
        arguments: StoreBackup.KillPoint.allCases)
    func killed(step: StoreBackup.KillPoint) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(2)
            let killed = try await MigrateProcess.crash(
                fixture.store.path, "backup", fixture.backups.path, "\(step)")
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            let backups = try FileManager.default.contentsOfDirectory(atPath: fixture.backups.path)
                .filter { !$0.hasPrefix(".") }
            #expect(backups.count == (step == .named ? 1 : 0))
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
            for name in backups {
                #expect(try await fixture.restore(fixture.backups.appending(path: name)).status == 0)
            }
            // The next one removes what is left, and leaves alone what somebody else is making in the same place.
            let others = try BackupDraft(in: fixture.backups, FileSystem())
            #expect(try await fixture.migrate("backup").status == 0)
            #expect(try fixture.leftovers() == ["store.backups/\(others.folder.lastPathComponent)"])
            withExtendedLifetime(others) {}
        }
    }
}

extension MigrationFixture {
    /// Makes backups beside the store, one after the other, and gives their paths.
    fileprivate func makeBackups(
        _ count: Int, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> [String] {
        var made: [String] = []
        for _ in 0..<count {
            let outcome = try await migrate("backup")
            #expect(outcome.status == 0, "\(outcome.errors)", sourceLocation: sourceLocation)
            made.append(outcome.output.trimmingCharacters(in: .newlines))
        }
        return made
    }

    /// Makes a backup that says that it was made at the beginning of a year, and gives its path.
    func makeBackup(ofYear year: Int) async throws -> String {
        let backup = try await makeBackups(1)[0]
        let manifest = URL(filePath: backup).appending(path: "manifest.json")
        let text = try String(contentsOf: manifest, encoding: .utf8)
        let changed = text.replacing(/"created" ?: ?"[^"]+"/, with: #""created":"\#(year)-01-01T00:00:00Z""#)
        try Data(changed.utf8).write(to: manifest)
        return backup
    }

    func restore(_ backup: URL, _ more: String...) async throws -> MigrateProcess.Outcome {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return try await MigrateProcess.run(["restore", backup.path, "--store", store.path] + more)
    }
}
