import Foundation
import LarderFiles
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("The folder of a cache", .timeLimit(.minutes(10)))
struct CacheFolderTests {
    /// Runs `body` with the folder of a cache of three books that is closed.
    private func withFolder(
        steps: [FormatStep] = [], _ body: (CacheFolder, _ base: URL) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { base in
            let folder = base.appending(path: "records")
            let library = try LibraryCache(folder)
            try await library.fill(3)
            try library.cache.close()
            try await body(CacheFolder(path: folder.path, stamp: "library", options: .patient, steps: steps), base)
        }
    }

    /// Changes a closed environment's table of counters, or another.
    private func change(
        _ path: String, _ body: (inout WriteTransaction, Tables) throws -> Void
    ) throws {
        let environment = try Environment(folder: path, tables: Tables.definitions)
        let tables = try #require(Tables(environment))
        try environment.write(deadline: .now + .seconds(300)) { try body(&$0, tables) }
        try environment.close()
    }

    private func stage(_ copy: String, in folder: CacheFolder) throws {
        try folder.stage("token") { try FileManager.default.copyItem(atPath: copy + "/data.mdb", toPath: $0) }
    }

    /// Gives a closed cache the mark of another format.
    private func mark(_ path: String, format: UInt32) throws {
        try change(path) { transaction, tables in
            var bytes = try GenerationState.stored(transaction, tables).encoded
            withUnsafeBytes(of: format.littleEndian) { bytes.replaceSubrange(0..<4, with: $0) }
            let sum = bytes.withUnsafeBytes { checksum(UnsafeRawBufferPointer(rebasing: $0[..<56])) }
            withUnsafeBytes(of: sum.littleEndian) { bytes.replaceSubrange(56..<60, with: $0) }
            let key = GenerationState.key
            try transaction.put(key.rawSpan, bytes.rawSpan, in: tables.meta)
        }
    }

    @Test("Where there is no cache none is marked as one that is to go, and no folder is made for the mark")
    func marksNothing() async throws {
        try await withTemporaryFolder { base in
            let path = base.appending(path: "none").path
            let folder = CacheFolder(path: path, stamp: "library", options: .patient, steps: [])
            try folder.markForgotten()
            let isForgotten = try folder.isForgotten()
            #expect(!isForgotten && !FileManager.default.fileExists(atPath: path))
            let error = #expect(throws: RecordError.self) { try folder.copy(to: base.appending(path: "copy").path) }
            #expect(error?.code == .missing)
        }
    }

    @Test("The last generation is damaged where it has no data file; one below it was being removed")
    func lostFile() async throws {
        try await withFolder { folder, _ in
            let current = try folder.format()
            #expect(current.state == .current)
            #expect(current.byteCount > 0)
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(current.generation + 3)", withIntermediateDirectories: false)
            #expect(try folder.format() == current)
            let next = current.generation + 1
            try FileManager.default.moveItem(
                atPath: "\(folder.path)/\(current.generation)", toPath: "\(folder.path)/\(next)")
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(current.generation)", withIntermediateDirectories: false)
            #expect(try folder.format().state == .current)
            #expect(try folder.format().generation == next)
            try FileManager.default.removeItem(atPath: "\(folder.path)/\(next)")
            let lost = try folder.format()
            #expect(lost.state == .damaged("it has no data file"))
            #expect((lost.generation, lost.byteCount) == (current.generation + 3, 0))
            #expect(try folder.finding(lost) == "it has no data file")
        }
    }

    @Test("What is wrong with a cache is its first problem, and how many others there are", arguments: 0...3)
    func findings(count: Int) async throws {
        try await withFolder { folder, _ in
            let format = try folder.format()
            try change("\(folder.path)/\(format.generation)") { transaction, tables in
                for number in 0..<UInt8(count) {
                    try transaction.put([number].rawSpan, [number].rawSpan, in: tables.fields)
                }
            }
            let problem = "page ?: the table of split fields has a key of 1 bytes"
            let expected = [nil, problem, problem + ", and 1 more", problem + ", and 2 more"]
            #expect(try folder.finding(format) == expected[count])
            guard let finding = expected[count] else { return }
            var options = RecordCache.Options.patient
            options.verifiesAlways = true
            let refusal = #expect(throws: RecordError.self) {
                try RecordCache(folder: folder.path, stamp: "library", options: options)
            }
            #expect(refusal?.message.contains("is damaged (\(finding));") == true)
        }
    }

    @Test("Programs that watch a folder for commits are told when a cache is replaced")
    func watched() async throws {
        try await withFolder { folder, base in
            // Another folder than the cache's, in which files are closed meanwhile.
            let place = base.appending(path: "watched")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false)
            var options = RecordCache.Options.patient
            options.watchedFolder = place.path
            let told = CacheFolder(path: folder.path, stamp: "library", options: options)
            let watch = try #require(FolderWatch(place.path))
            try told.rebuild(deadline: .now + .seconds(300))
            #expect(watch.take())
        }
    }

    @Test("Where the old generation cannot be given up, the new one goes, and the cache is as it was")
    func failedCommit() async throws {
        try await withFolder { folder, _ in
            let isFailing = Atomic(false)
            var options = RecordCache.Options.patient
            options.files = FileSystem { call in
                guard isFailing.load(ordering: .relaxed), call.kind == .write, call.path.hasSuffix("/1/data.mdb")
                else { return nil }
                return .failure(EIO)
            }
            let failing = CacheFolder(path: folder.path, stamp: "library", options: options)
            #expect(throws: RecordError.self) {
                try failing.migrate(deadline: .now + .seconds(300)) { step in
                    if step == .named { isFailing.store(true, ordering: .relaxed) }
                }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["1"])
            let library = try LibraryCache(URL(filePath: folder.path))
            #expect(try library.cache.presence(of: "Book:1").presence == .present)
            try expectSound(library.cache)
            try library.cache.close()
        }
    }

    @Test("A copy in an older format is brought back empty, or by its steps; in a newer one it is refused")
    func staged() async throws {
        for hasStep in [false, true] {
            try await withFolder(steps: hasStep ? [FormatStep(from: 0) { _, _ in }] : []) { folder, base in
                let copy = base.appending(path: "copy").path
                try folder.copy(to: copy)
                try mark(copy, format: 0)
                try stage(copy, in: folder)
                #expect(try folder.stagedTokens() == ["token"])
                try folder.adoptStaged("token", deadline: .now + .seconds(300))
                #expect(try folder.stagedTokens() == [])
                #expect(try folder.format().state == .current)
                let library = try LibraryCache(URL(filePath: folder.path))
                #expect(try library.cache.presence(of: "Book:1").presence == (hasStep ? .present : .absent))
                try await library.fill(4)
                #expect(try library.cache.presence(of: "Book:3").presence == .present)
                try expectSound(library.cache)
                try library.cache.close()
            }
        }
        try await withFolder { folder, base in
            let copy = base.appending(path: "copy").path
            try folder.copy(to: copy)
            try mark(copy, format: 9)
            let error = #expect(throws: RecordError.self) { try stage(copy, in: folder) }
            #expect(error?.code == .futureFormat)
            #expect(try folder.stagedTokens() == [])
        }
    }

    @Test("A cache that is to go has the file forgotten in its folder, and one that is to come lies in restored-TOKEN")
    func documentedNames() async throws {
        try await withFolder { folder, base in
            let copy = base.appending(path: "copy").path
            try folder.copy(to: copy)
            try stage(copy, in: folder)
            try folder.markForgotten()
            for name in ["forgotten", "restored-token/data.mdb"] {
                #expect(FileManager.default.fileExists(atPath: "\(folder.path)/\(name)"), "\(name)")
            }
        }
    }

    @Test("A copy of another partition's cache, or of a damaged one, is not brought back")
    func refused() async throws {
        try await withFolder { folder, base in
            let copy = base.appending(path: "copy").path
            try folder.copy(to: copy)
            try change(copy) { transaction, tables in
                try transaction.put(([1] as [UInt8]).rawSpan, ([1] as [UInt8]).rawSpan, in: tables.fields)
            }
            let error = #expect(throws: RecordError.self) { try stage(copy, in: folder) }
            #expect(error?.code == .damaged)
            #expect(error?.message.hasPrefix("The copy is damaged: page ?") == true)
            #expect(try folder.stagedTokens() == [])
            let other = CacheFolder(path: folder.path, stamp: "other", options: .patient)
            let refusal = #expect(throws: RecordError.self) { try other.copy(to: base.appending(path: "theirs").path) }
            #expect(refusal?.code == .otherPartition)
        }
    }

    @Test("A copy of another partition's cache is staged for no partition")
    func stagedOfAnother() async throws {
        try await withFolder { folder, base in
            let copy = base.appending(path: "copy").path
            try folder.copy(to: copy)
            let other = CacheFolder(path: folder.path, stamp: "other", options: .patient)
            let refusal = #expect(throws: RecordError.self) { try stage(copy, in: other) }
            #expect(refusal?.code == .otherPartition)
            #expect(try other.stagedTokens() == [])
        }
    }

    @Test("A cache that is superseded while it is copied is copied anew, as the generation that took its place")
    func copiedAnew() async throws {
        try await withFolder { folder, base in
            let newer = base.appending(path: "newer")
            let library = try LibraryCache(newer)
            try await library.fill(4)
            try library.cache.close()
            try FileManager.default.moveItem(atPath: newer.path + "/1", toPath: folder.path + "/2")
            let openings = Mutex(0)
            var options = RecordCache.Options.patient
            options.files = FileSystem { call in
                guard call.kind == .open, call.path == folder.path + "/1/data.mdb" else { return nil }
                let count = openings.withLock { count in
                    count += 1
                    return count
                }
                // It was opened once to be looked at, and is opened now to be copied.
                guard count == 2 else { return nil }
                #expect(throws: Never.self) {
                    try change(folder.path + "/1") { transaction, tables in
                        var state = try GenerationState.stored(transaction, tables)
                        state.isSuperseded = true
                        try state.store(&transaction, tables)
                    }
                }
                return nil
            }
            let copy = base.appending(path: "copy")
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            try CacheFolder(path: folder.path, stamp: "library", options: options).copy(to: copy.path + "/1")
            #expect(openings.withLock { $0 } >= 2)
            let copied = try LibraryCache(copy)
            #expect(try copied.cache.presence(of: "Book:3").presence == .present)
            try copied.cache.close()
        }
    }

    @Test("A cache opens although a generation below the current one has no file: that was being removed")
    func lostFileBelow() async throws {
        try await withFolder { folder, _ in
            let number = try folder.format().generation
            try FileManager.default.moveItem(
                atPath: "\(folder.path)/\(number)", toPath: "\(folder.path)/\(number + 1)")
            try FileManager.default.createDirectory(
                atPath: "\(folder.path)/\(number)", withIntermediateDirectories: false)
            let library = try LibraryCache(URL(filePath: folder.path))
            #expect(try library.cache.presence(of: "Book:1").presence == .present)
            try library.cache.close()
        }
    }
}
