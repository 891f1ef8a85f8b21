import Foundation
import LarderFiles
import LarderOperations
import LarderPowerLoss
import LarderTestSupport
import Logging
import Synchronization
import Testing

@testable import Larder

/// Calls `body` with what a child did that made a store and all that belongs to it.
private func withRecording(
    of work: String, _ body: (_ recording: Recording, _ root: URL) throws -> Void
) async throws {
    try await PowerRecorder.withScratch { folder in
        let root = folder.appending(path: "root")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        let recording = try await PowerRecorder.record(root, beside: folder, ["belongings", "-", work])
        try body(recording, root)
    }
}

/// The permissions of everything in a folder, by path.
private func modes(in folder: URL) throws -> [String: Int] {
    var found: [String: Int] = [:]
    for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) {
        let attributes = try FileManager.default.attributesOfItem(atPath: folder.appending(path: name).path)
        found[name] = attributes[.posixPermissions] as? Int
    }
    return found
}

private func setMode(_ mode: Int, _ file: URL) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
}

/// Gives everybody what the owner may, as versions did that left modes to the process's mask.
private func expose(_ folder: URL) throws {
    for name in try [""] + FileManager.default.subpathsOfDirectory(atPath: folder.path) {
        let file = name.isEmpty ? folder : folder.appending(path: name)
        var isFolder: ObjCBool = false
        _ = FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder)
        try setMode(isFolder.boolValue ? 0o755 : 0o644, file)
    }
}

@Suite("Files of a store are its user's alone", .timeLimit(.minutes(10)))
struct PrivateFilesTests {
    @Test(
        "A store, its queue, keys, backups and restoration are made with rights for their user alone",
        .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"))
    func made() async throws {
        try await withRecording(of: "everything") { (recording, root) throws in
            #expect(recording.exposed == [])
            let modes = try modes(in: root)
            #expect(modes.filter { $0.value & 0o077 != 0 } == [:])
            // Nothing of it was forgotten.
            for name in ["store/larder.sqlite", "store/locks/migrate", "store/schemas", "store.key", "backups"] {
                #expect(modes[name] != nil, "\(name)")
            }
        }
    }

    @Test(
        "Partial downloads are made with rights for their user alone",
        .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"))
    func partialDownloads() async throws {
        try await PowerRecorder.withScratch { folder in
            let root = folder.appending(path: "root")
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: "transfers", seed: RecordedLoad.seed, lives: 1)
            #expect(recording.exposed.filter { $0.contains("/store") } == [])
        }
    }

    @Test(
        "A new store that only fetches is not lost with the name of its folder",
        .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"))
    func names() async throws {
        try await withRecording(of: "records") { (recording, root) throws in
            var (inodes, unsynced): ([String: UInt64], [String: UInt64]) = ([:], [:])
            for entry in recording.entries {
                switch entry {
                case .root(let inode): inodes[root.path] = inode
                case .makeFolder(let path, let inode):
                    inodes[path] = inode
                    let parent: UInt64 = try #require(inodes[URL(filePath: path).deletingLastPathComponent().path])
                    unsynced[path] = parent
                case .sync(let inode, _): unsynced = unsynced.filter { $0.value != inode }
                default: break
                }
            }
            #expect(inodes[root.appending(path: "store").path] != nil)
            #expect(unsynced[root.appending(path: "store").path] == nil)
            #expect(unsynced[root.appending(path: "store/records").path] == nil)
        }
    }

    @Test(
        "A key file is on disk before it has its name, and its name when the call returns",
        .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"))
    func keyFiles() async throws {
        try await withRecording(of: "everything") { (recording, root) throws in
            let key = root.appending(path: "store.key").path
            var (inodes, unsynced, named, rootInode): ([String: UInt64], Set<UInt64>, Int, UInt64) = ([:], [], 0, 0)
            var nameIsSynced = true
            for entry in recording.entries {
                switch entry {
                case .root(let inode): rootInode = inode
                case .create(let path, let inode): inodes[path] = inode
                case .write(let inode, _, _, false): unsynced.insert(inode)
                case .sync(let inode, _):
                    unsynced.remove(inode)
                    if inode == rootInode { nameIsSynced = true }
                case .link(let from, key), .rename(let from, key):
                    named += 1
                    nameIsSynced = false
                    let inode = try #require(inodes[from])
                    #expect(!unsynced.contains(inode))
                default: break
                }
            }
            #expect(named == 2)
            #expect(nameIsSynced)
        }
    }

    // MARK: Stores of older versions

    private func withExposedStore(_ body: (URL, RecordedLog) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            _ = try store.partition().read(GraphQLOperation("{ __typename }"), allowsPartial: true)
            _ = try store.operationsDatabase()
            try store.close()
            try expose(place)
            try await body(place, RecordedLog(from: .warning))
        }
    }

    private func open(
        _ place: URL, _ warnings: RecordedLog, isReadOnly: Bool = false, files: FileSystem = FileSystem()
    ) throws {
        var options = Store.Options()
        options.logger = warnings.logger
        options.isReadOnly = isReadOnly
        options.files = files
        let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema), options: options)
        _ = try store.partition()
        try store.close()
    }

    @Test("A store that everybody may read is narrowed when it is opened for writing, and the log says so once")
    func narrowed() async throws {
        try await withExposedStore { place, warnings in
            try open(place, warnings)
            #expect(try modes(in: place).filter { $0.value & 0o077 != 0 } == [:])
            #expect(try FileManager.default.attributesOfItem(atPath: place.path)[.posixPermissions] as? Int == 0o700)
            try open(place, warnings)
            let texts = warnings.texts.withLock { $0 }
            #expect(texts.count == 1)
            #expect(texts.first?.contains("larder.sqlite (644)") == true, "\(texts)")
            #expect(texts.first?.hasSuffix("Now they cannot.") == true, "\(texts)")
        }
    }

    @Test("A store that its user's group alone may read is narrowed as well, and the log says so")
    func group() async throws {
        try await withExposedStore { place, warnings in
            try open(place, warnings)
            try setMode(0o640, place.appending(path: "larder.sqlite"))
            try setMode(0o750, place.appending(path: "records"))
            try open(place, warnings)
            #expect(try modes(in: place).filter { $0.value & 0o077 != 0 } == [:])
            let texts = warnings.texts.withLock { $0 }
            #expect(texts.count == 2)
            for item in ["larder.sqlite (640)", "records (750)"] {
                #expect(texts.last?.contains(item) == true, "\(texts)")
            }
        }
    }

    @Test("What a store keeps in its folder, or a killed program has left there, is known by its name")
    func ownNames() {
        let database = "larder.sqlite"
        let own = [
            "records", "schemas", "locks", "transfers", database, "\(database)-wal", "\(database)-shm",
            "\(database)-journal", "\(database).damaged-2026", "restored-1.sqlite", ".repair-1",
            ".\(database).new", ".profile",
        ]
        #expect(own.filter { !StoreContents.isOwn($0) } == [])
        #expect(own.filter { !StoreContents.isMade($0) } == [".profile"])
        let others = ["index.html", "larder", "\(database)-old", "records.old", "restored-1", "damaged-1"]
        #expect(others.filter { StoreContents.isOwn($0) || StoreContents.isMade($0) } == [])
    }

    @Test("A partition's name has 64 letters, digits, hyphens and underscores at most, and leads to no other folder")
    func partitionNames() {
        for name in ["a", Store.unnamedPartition, "A-b_9", String(repeating: "n", count: 64)] {
            #expect(StoreStatus.isPartitionName(name), "\(name)")
        }
        for name in ["", ".", "..", "a/b", "é", ".removed-1", String(repeating: "n", count: 65)] {
            #expect(!StoreStatus.isPartitionName(name), "\(name)")
        }
    }

    @Test("The log names the first three files that were exposed, and counts the others")
    func listed() async throws {
        try await withExposedStore { place, warnings in
            try open(place, warnings)
            let names = ["larder.sqlite", "locks", "records", "records/main"]
            for count in 1...4 {
                for name in names.prefix(count) {
                    try setMode(name.contains(".") ? 0o644 : 0o755, place.appending(path: name))
                }
                try open(place, warnings)
                let text = try #require(warnings.texts.withLock { $0.last })
                let end = count > 3 ? " and 1 more of the store" : ") of the store"
                #expect(text.contains(end) && text.components(separatedBy: "(").count == min(count, 3) + 1, "\(text)")
            }
        }
    }

    @Test("A store that is only read is reported, and nothing of it is changed")
    func told() async throws {
        try await withExposedStore { place, warnings in
            let before = try modes(in: place)
            try open(place, warnings, isReadOnly: true)
            let texts = warnings.texts.withLock { $0 }
            #expect(texts.count == 1)
            #expect(texts.first?.contains("chmod -R go=") == true, "\(texts)")
            #expect(try modes(in: place).filter { before[$0.key] != nil } == before)
        }
    }

    @Test("A store opens on a volume that keeps no permissions, and the log says that they cannot be changed")
    func withoutRights() async throws {
        try await withExposedStore { place, warnings in
            try open(place, warnings, files: FileSystem { $0.kind == .setMode ? .pretence : nil })
            let modes = try modes(in: place)
            #expect(modes["larder.sqlite"] == 0o644 && modes["records"] == 0o755)
            let text = try #require(warnings.texts.withLock { $0.last })
            #expect(text.contains("this user cannot change that"), "\(text)")
        }
    }

    @Test("Backups of an older version keep their rights when their store is narrowed")
    func backups() async throws {
        try await withExposedStore { place, warnings in
            let backups = place.deletingLastPathComponent().appending(path: "store.backups")
            let backup = backups.appending(path: "20260101T000000Z")
            try FileManager.default.createDirectory(at: backup, withIntermediateDirectories: true)
            try Data("kept".utf8).write(to: backup.appending(path: "larder.sqlite"))
            try expose(backups)
            let before = try modes(in: backups)
            #expect(before.values.sorted() == [0o644, 0o755])
            try open(place, warnings)
            #expect(try modes(in: place).filter { $0.value & 0o077 != 0 } == [:])
            #expect(try modes(in: backups) == before)
        }
    }

    @Test("In a folder that holds other things too, only what the store made is narrowed")
    func neighbours() async throws {
        try await withExposedStore { place, warnings in
            let (page, hidden) = (place.appending(path: "index.html"), place.appending(path: ".profile"))
            for file in [page, hidden] {
                try Data("mine".utf8).write(to: file)
                try setMode(0o644, file)
            }
            let outside = place.deletingLastPathComponent().appending(path: "outside")
            try Data("mine".utf8).write(to: outside)
            try setMode(0o644, outside)
            try FileManager.default.createSymbolicLink(
                at: place.appending(path: "records/link"), withDestinationURL: outside)
            try open(place, warnings)
            #expect(
                Set(try modes(in: place).filter { $0.value & 0o077 != 0 && $0.key != "records/link" }.keys)
                    == ["index.html", ".profile"])
            for untouched in [place, outside] {
                let mode = try FileManager.default.attributesOfItem(atPath: untouched.path)[.posixPermissions] as? Int
                #expect(mode == (untouched == place ? 0o755 : 0o644))
            }
        }
    }

    @Test(
        "A store of another user's is opened and told of, though this user can change nothing of it",
        .enabled(if: ChildProgram.isBuilt && geteuid() == 0, "becomes another user, as root alone may"))
    func others() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            _ = try store.partition()
            _ = try store.operationsDatabase()
            try store.close()
            // Whatever mask this process has.
            try setMode(0o755, folder)
            // For everybody to write: what was made for a group once, and is not this user's to narrow.
            for name in try [""] + FileManager.default.subpathsOfDirectory(atPath: place.path) {
                let file = name.isEmpty ? place : place.appending(path: name)
                var isFolder: ObjCBool = false
                _ = FileManager.default.fileExists(atPath: file.path, isDirectory: &isFolder)
                try setMode(isFolder.boolValue ? 0o777 : 0o666, file)
            }
            #expect(try await ChildProgram.run(place, "stranger", "queue") == ["queued"])
        }
    }
}
