import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Calls of the file system", .timeLimit(.minutes(10)))
struct FileSystemTests {
    /// A file system whose reads and writes all move seven bytes at most.
    private static let short = FileSystem { call in
        [.read, .write].contains(call.kind) ? .shortened(to: 7) : nil
    }

    @Test("Bytes that the system reads or writes in pieces arrive whole")
    func pieces() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            let bytes = (0..<100).map { UInt8($0) }
            let file = try Self.short.open(path, [.reading, .writing, .new])
            try file.write(bytes, at: 3)
            #expect(try Array(Data(contentsOf: URL(filePath: path))) == [0, 0, 0] + bytes)
            #expect(try file.bytes(at: 3, count: 100) == bytes)
            #expect(try file.bytes(at: 90, count: 100) == Array(bytes[87...]))
        }
    }

    @Test("A file that is opened as synchronous is so, and others are not", arguments: [true, false])
    func synchronous(isSo: Bool) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            let file = try FileSystem().open(path, isSo ? [.writing, .new, .synchronous] : [.writing, .new])
            #expect((fcntl(file.descriptor, F_GETFL) & O_DSYNC == O_DSYNC) == isSo)
        }
    }

    @Test("A file that takes no more bytes, and says no reason, is a full disk, and not asked for ever")
    func takesNothing() async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem { $0.kind == .write ? .shortened(to: 0) : nil }
            let file = try files.open(folder.appending(path: "file").path, [.writing, .new])
            let error = #expect(throws: FileError.self) { try file.write([1, 2, 3], at: 0) }
            #expect(error?.code == .noSpace)
        }
    }

    @Test("A small file is on the disk before it takes the other's name, and is not there at all where that fails")
    func replaced() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            let recorded = InjectedFaults(at: .max) { _ in nil }
            try recorded.files.replace(path, with: [1, 2, 3])
            let kinds = recorded.calls.map(\.kind).filter { [.write, .synchronize, .rename].contains($0) }
            #expect(kinds == [.write, .synchronize, .rename])
            for number in recorded.calls.indices where recorded.calls[number].kind != .status {
                let faults = InjectedFaults(at: number) { _ in .failure(EIO) }
                #expect(throws: FileError.self) { try faults.files.replace(path, with: [4]) }
                #expect(try Array(Data(contentsOf: URL(filePath: path))) == [1, 2, 3])
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
            }
        }
    }

    @Test("A file that cannot be filled with zeros is as long as it was, and not taken for a filled one")
    func filled() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            try Data([1, 2]).write(to: URL(filePath: path))
            let full = InjectedFaults(at: 0, isLasting: true) { call in
                call.kind == .write ? call.count < 8_190 ? .failure(ENOSPC) : .shortened(to: 100) : nil
            }
            let error = #expect(throws: FileError.self) { try full.files.fill(path, to: 8_192) }
            #expect(error?.code == .noSpace)
            #expect(try Data(contentsOf: URL(filePath: path)) == Data([1, 2]))
            try FileSystem().fill(path, to: 8_192)
            #expect(try Data(contentsOf: URL(filePath: path)) == Data([1, 2]) + Data(count: 8_190))
            try FileSystem().fill(path + ".new", to: 3)
            #expect(try Data(contentsOf: URL(filePath: path + ".new")) == Data(count: 3))
        }
    }

    @Test(
        "An empty file is made also where the volume knows no links, and a file that is there stays as it is",
        arguments: [0, EPERM, ENOTSUP, EMLINK])
    func madeWithoutLinks(status: Int32) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            let files = FileSystem { $0.kind == .link && status != 0 ? .failure(status) : nil }
            try files.makeEmptyFile(path)
            #expect(try Data(contentsOf: URL(filePath: path)).isEmpty)
            try Data([1]).write(to: URL(filePath: path))
            try files.makeEmptyFile(path)
            #expect(try Data(contentsOf: URL(filePath: path)) == Data([1]))
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["file"])
        }
    }

    @Test("A folder that is made has its name synced, and so has each above it on the volume")
    func madeFolders() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.resolvingSymlinksInPath().path
            let recorded = InjectedFaults(at: .max) { _ in nil }
            try recorded.files.makeFolder(path + "/a/b")
            let synced = recorded.calls.filter { $0.kind == .synchronizeFolder }.map(\.path)
            // The names above the first that was made, from there up; then those that were made, from there down.
            #expect(synced.last == path + "/a")
            var above: [String] = []
            var place = path
            while place != "/", try FileSystem().status(of: place)?.device == FileSystem().status(of: path)?.device {
                above.append(place)
                place = FileSystem.parent(of: place)
            }
            #expect(Array(synced.prefix(above.count)) == above)
        }
    }

    @Test("A folder is made for this user alone, and so is each above it that is missing")
    func privateFolders() async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem()
            try files.makeFolder(folder.path + "/a/b")
            for name in ["/a", "/a/b"] {
                let mode = try #require(try files.status(of: folder.path + name)).mode
                #expect(mode & 0o777 == 0o700, "\(name) has \(String(mode, radix: 8))")
            }
        }
    }

    @Test("A folder that is found has its name synced: the process that made it may not have come to that")
    func foundFolder() async throws {
        try await withTemporaryFolder { folder in
            let recorded = InjectedFaults(at: .max) { _ in nil }
            try recorded.files.makeFolder(folder.path)
            let synced = recorded.calls.filter { $0.kind == .synchronizeFolder }.map(\.path)
            #expect(synced == [FileSystem.parent(of: folder.path)])
        }
    }

    @Test("A schema that is kept in a new store has the names of the folders synced that are made for it")
    func keptSchema() async throws {
        try await withTemporaryFolder { folder in
            let recorded = InjectedFaults(at: .max) { _ in nil }
            var options = Store.Options()
            options.files = recorded.files
            let path = folder.resolvingSymlinksInPath()
            let store = try Store.open(
                at: path.appending(path: "a/store"), schemaText: ["type Query { a: Int }"], options: options)
            try store.close()
            let synced = recorded.calls.filter { $0.kind == .synchronizeFolder }.map(\.path)
            #expect(synced.suffix(2) == [path.path + "/a", path.path + "/a/store"])
            #expect(synced.contains(path.path))
        }
    }

    @Test(
        "A folder whose sync cannot be asked for is passed over, and one whose sync fails is an error",
        arguments: [
            (EINVAL, true), (ENOTSUP, true), (EROFS, true), (EACCES, true), (EPERM, true), (EIO, false),
            (ENOSPC, false),
        ])
    func folderSync(status: Int32, isPassedOver: Bool) async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem { $0.kind == .synchronizeFolder ? .failure(status) : nil }
            if isPassedOver {
                try files.synchronizeFolder(folder.path)
            } else {
                let error = #expect(throws: FileError.self) { try files.synchronizeFolder(folder.path) }
                #expect(error?.status == status)
            }
        }
    }

    @Test(
        "Syncing a folder passes over one that this user may not open, and throws every other failure",
        arguments: [(EACCES, true), (EPERM, true), (EIO, false), (EMFILE, false)])
    func unopenedFolder(status: Int32, isPassedOver: Bool) async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem { $0.kind == .open ? .failure(status) : nil }
            if isPassedOver {
                try files.synchronizeFolder(folder.path)
            } else {
                let error = #expect(throws: FileError.self) { try files.synchronizeFolder(folder.path) }
                #expect(error?.status == status)
            }
        }
    }

    @Test("A file that another process makes meanwhile is there, and one that vanishes on the way is an error")
    func madeMeanwhile() async throws {
        for isMade in [true, false] {
            try await withTemporaryFolder { folder in
                let path = folder.appending(path: "file").path
                let files = FileSystem { call in
                    guard call.kind == .link else { return nil }
                    // The other process has removed the file that both give the name to.
                    if isMade { try? Data([1, 2]).write(to: URL(filePath: path)) }
                    return .failure(ENOENT)
                }
                if isMade {
                    try files.makeEmptyFile(path)
                    #expect(try Array(Data(contentsOf: URL(filePath: path))) == [1, 2])
                } else {
                    let error = #expect(throws: FileError.self) { try files.makeEmptyFile(path) }
                    #expect(error?.code == .missing)
                    #expect(error?.path == path)
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == (isMade ? ["file"] : []))
            }
        }
    }

    @Test("Removing a file says whether there was one, below another file too")
    func removedFile() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            try Data([1]).write(to: URL(filePath: path))
            #expect(try !FileSystem().remove(path + "/below"))
            #expect(try FileSystem().remove(path))
            #expect(try !FileSystem().remove(path))
            #expect(try !FileSystem().remove(path + "/below"))
        }
    }

    @Test("A tree is removed with the links in it, and not with what they lead to")
    func removedTree() async throws {
        try await withTemporaryFolder { folder in
            let (tree, kept) = (folder.appending(path: "tree"), folder.appending(path: "kept"))
            for place in [tree.appending(path: "below"), kept] {
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                try Data([1]).write(to: place.appending(path: "file"))
            }
            try FileManager.default.createSymbolicLink(
                at: tree.appending(path: "below/link"), withDestinationURL: kept)
            let link = folder.appending(path: "link")
            try FileManager.default.createSymbolicLink(at: link, withDestinationURL: kept)
            try FileSystem().removeTree(tree.path)
            try FileSystem().removeTree(link.path)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["kept"])
            #expect(try FileManager.default.contentsOfDirectory(atPath: kept.path) == ["file"])
        }
    }

    @Test("A pipe in a file's place keeps nobody waiting")
    func pipe() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "pipe").path
            try #require(mkfifo(path, 0o600) == 0)
            #expect(try FileSystem().open(path).status().kind == .other)
            // Without a reader it cannot be written, which is said at once.
            let error = #expect(throws: FileError.self) { try FileSystem().open(path, .writing) }
            #expect(error?.status == ENXIO)
        }
    }

    @Test(
        "A disk that is full, a quota and a limit on file sizes have the same remedy",
        arguments: [ENOSPC, EDQUOT, EFBIG])
    func noSpace(status: Int32) {
        #expect(FileError(status, doing: "Writing a file", path: "/file").code == .noSpace)
    }

    @Test("Open files and memory are what others may let go of, and room on a volume is not")
    func shortage() {
        func isShortage(_ status: Int32) -> Bool { FileError(status, doing: "Opening", path: "/file").isShortage }
        for status in [EMFILE, ENFILE, ENOMEM] { #expect(isShortage(status), "\(status)") }
        for status in [ENOSPC, EACCES, ENOENT, EIO] { #expect(!isShortage(status), "\(status)") }
    }

    @Test(
        "A name that is taken has the same remedy, be it a file's or that of a folder with something in it",
        arguments: [EEXIST, ENOTEMPTY])
    func taken(status: Int32) {
        #expect(FileError(status, doing: "Renaming a folder", path: "/folder").code == .exists)
    }

    @Test("A lock ends with its file, although a child that is being started has it open still")
    func inheritedLock() async throws {
        try await withTemporaryFolder { folder in
            func open() throws -> File {
                try FileSystem().open(folder.appending(path: "lock").path, [.reading, .writing, .making])
            }
            let file = try open()
            #expect(try file.tryLock(.exclusive))
            // As a fork does.
            let inherited = dup(file.descriptor)
            defer { close(inherited) }
            #expect(try !open().tryLock(.exclusive))
            file.close()
            #expect(try open().tryLock(.exclusive))
        }
    }

    @Test("A note of a lock file takes the place of a longer one")
    func notes() async throws {
        try await withTemporaryFolder { folder in
            let lock = try LockFile(making: folder.appending(path: "locks/lock").path)
            for note in [String(repeating: "long ", count: 20), "short", ""] {
                lock.setNote(note)
                #expect(lock.note() == note)
            }
            lock.setNote(String(repeating: "x", count: 500))
            #expect(lock.note() == String(repeating: "x", count: 159))
        }
    }
}
