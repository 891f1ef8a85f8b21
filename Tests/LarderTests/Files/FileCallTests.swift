import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("What each call of the file system promises", .timeLimit(.minutes(5)))
struct FileCallTests {
    private func content(_ path: String) throws -> [UInt8] { try Array(Data(contentsOf: URL(filePath: path))) }

    @Test("A file is made, emptied, or refused as the caller says, and a link may be refused")
    func access() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            let files = FileSystem()
            #expect(throws: FileError.self) { try files.open(path, [.reading, .writing]) }
            try files.open(path, [.writing, .making]).write([1, 2, 3], at: 0)
            _ = try files.open(path, [.writing, .making])
            #expect(try content(path) == [1, 2, 3])
            let error = #expect(throws: FileError.self) { try files.open(path, [.writing, .new]) }
            #expect(error?.code == .exists)
            let link = folder.appending(path: "link").path
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: path)
            #expect(try files.open(link).bytes(at: 0, count: 9) == [1, 2, 3])
            let refusal = #expect(throws: FileError.self) { try files.open(link, [.reading, .unlinked]) }
            #expect(refusal?.status == ELOOP)
            #expect(throws: FileError.self) { try files.open(link, [.writing, .emptied, .unlinked]) }
            #expect(try content(path) == [1, 2, 3])
            _ = try files.open(path, [.writing, .emptied])
            #expect(try content(path) == [])
        }
    }

    @Test("Making a folder none of whose parents is there, nor can be, is an error", arguments: ["/a/b", "a/b", "a"])
    func noParent(path: String) throws {
        let calls = Mutex(0)
        let files = FileSystem { call in
            let count = calls.withLock { calls in
                calls += 1
                return calls
            }
            // A search that goes on for ever ends in another error.
            return [.makeFolder, .status].contains(call.kind) ? .failure(count > 50 ? EIO : ENOENT) : nil
        }
        let error = #expect(throws: FileError.self) { try files.makeFolder(path) }
        #expect(error?.code == .missing)
        #expect(error?.path == path)
    }

    @Test("A folder that cannot be made fails as the system says, and a file in its place is no folder")
    func folderRefused() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "new").path
            let refusing = FileSystem { $0.kind == .makeFolder ? .failure(EACCES) : nil }
            let error = #expect(throws: FileError.self) { try refusing.makeFolder(path) }
            #expect(error?.code == .permissionDenied)
            try refusing.makeFolder(folder.path)
            try Data([1]).write(to: URL(filePath: path))
            for place in [path, path + "/below"] {
                let error = #expect(throws: FileError.self) { try FileSystem().makeFolder(place) }
                #expect(error?.status == ENOTDIR)
            }
            #expect(try content(path) == [1])
        }
    }

    @Test(
        "The folder of a path is told by its slashes",
        arguments: [
            ("/", "/"), ("//", "/"), ("/a", "/"), ("/a/", "/"), ("//a", "/"), ("/a/b", "/a"), ("/a//b//", "/a"),
            ("a", "."), ("a/", "."), ("a/b", "a"), ("", "."),
        ])
    func parents(path: String, folder: String) { #expect(FileSystem.parent(of: path) == folder) }

    @Test("A copy has its bytes synced, the original's and no others, and is made where there is nothing")
    func copies() async throws {
        try await withTemporaryFolder { folder in
            let (path, copy) = (folder.appending(path: "file").path, folder.appending(path: "copy").path)
            let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
            try Data(bytes).write(to: URL(filePath: path))
            let recorded = InjectedFaults(at: .max) { _ in nil }
            var visited: [UInt8] = []
            try recorded.files.copy(path, to: copy) { visited += $0 }
            #expect(visited == bytes)
            #expect(try content(copy) == bytes)
            let last = recorded.calls.last { $0.path == copy }
            #expect(last?.kind == .synchronize)
            let error = #expect(throws: FileError.self) { try FileSystem().copy(path, to: copy) }
            #expect(error?.code == .exists)
        }
    }

    @Test("A second descriptor of a file is the file's, and no program that is started has it")
    func duplicated() async throws {
        try await withTemporaryFolder { folder in
            let files = FileSystem()
            let file = try files.open(folder.appending(path: "file").path, [.writing, .new])
            let copy = try files.duplicate(file.descriptor)
            defer { close(copy) }
            #expect(fcntl(copy, F_GETFD) & FD_CLOEXEC != 0)
            #expect(try files.status(ofDescriptor: copy).isSameFile(as: file.status()))
            let error = #expect(throws: FileError.self) { try files.duplicate(-1) }
            #expect(error?.status == EBADF)
        }
    }

    #if os(Linux)
    @Test("A folder's watch tells files that were open to be written from those that were only read")
    func watchedFolder() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            try Data([1]).write(to: URL(filePath: path))
            let watch = try #require(FolderWatch(folder.path))
            #expect(!watch.take())
            #expect(try FileSystem().bytes(of: path) == [1])
            #expect(!watch.take())
            _ = try FileSystem().open(path, .writing)
            #expect(watch.take())
            #expect(!watch.take())
            FolderNotice(folder.path).tell()
            #expect(watch.take())
        }
    }
    #endif

    @Test("A lock file that may not be written is read where that is enough, and refused where it must be written")
    func lockFile() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "lock").path
            try Data().write(to: URL(filePath: path))
            for (status, mustWrite, isOpened) in [
                (EACCES, false, true), (EROFS, false, true), (EACCES, true, false), (EIO, false, false),
            ] as [(Int32, Bool, Bool)] {
                let faults = InjectedFaults(at: 0) { _ in .failure(status) }
                let lock = try? LockFile(path: path, mustWrite: mustWrite, in: faults.files)
                #expect((lock != nil) == isOpened)
                #expect(lock?.isWritable != true)
            }
            #expect(try LockFile(path: path, mustWrite: true).isWritable)
        }
    }

    @Test("A file says whether it is this user's", .enabled(if: geteuid() == 0, "only root may give files away"))
    func owner() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            try Data().write(to: URL(filePath: path))
            #expect(try FileSystem().status(of: path)?.isOwn == true)
            #expect(chown(path, 12_345, 12_345) == 0)
            #expect(try FileSystem().status(of: path)?.isOwn == false)
        }
    }

    @Test("A volume has no room where less than a mebibyte is free", .enabled(if: canMount, "may not mount a tmpfs"))
    func room() async throws {
        try await withSmallVolume(1 << 20) { volume in
            let file = try FileSystem().open(volume.appending(path: "file").path, [.writing, .new])
            #expect(try file.freeSpace() == 1 << 20)
            #expect(!file.hasNoRoom)
            try file.write([1], at: 0)
            #expect(file.hasNoRoom)
        }
    }

    @Test("A file that is not there is not protected where there is data protection, and one that may not be opened is")
    func protected() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file").path
            #expect(!FileSystem(protectingFiles: true).isProtected(path))
            for status in [EPERM, EACCES, EIO] {
                for protects in [true, false] {
                    let files = FileSystem(
                        injecting: { $0.kind == .open ? .failure(status) : nil }, protectingFiles: protects)
                    #expect(files.isProtected(path) == (protects && status == EPERM))
                }
            }
        }
    }
}
