import Foundation
import LarderFiles
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderRecords

@Suite("Check", .timeLimit(.minutes(10)))
struct CheckTests {
    @Test("A sound cache has no problems, and the report counts what it holds")
    func sound() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(10)
            _ = try await library.cache.remove(keys: ["Book:1"], as: .deleted)
            _ = try await library.cache.remove(keys: ["Author:2"], as: .evicted)
            let report = try library.cache.check()
            #expect(report.problems == [])
            // Nine books, four authors and the root of all queries.
            #expect(report.counts.entities == 14)
            #expect(report.counts.tombstones == 1)
            #expect(report.counts.keys == 16)
            #expect(report.counts.changes == 3)
            #expect(report.counts.parts > 20)
            #expect(report.counts.pages > 5)
        }
    }

    @Test("A disk that fails while the pages are walked is an error, and no problem of the file")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let isFailing = Atomic(false)
            var options = RecordCache.Options()
            options.files = FileSystem { call in
                guard isFailing.load(ordering: .relaxed), call.kind == .read else { return nil }
                return call.path.hasSuffix("/data.mdb") ? .failure(EIO) : nil
            }
            let library = try LibraryCache(folder, options: options)
            try await library.fill(4)
            isFailing.store(true, ordering: .relaxed)
            let error = #expect(throws: RecordError.self) { _ = try library.cache.check() }
            #expect(error?.code == .storage)
            isFailing.store(false, ordering: .relaxed)
            try expectSound(library.cache)
        }
    }

    @Test("A record of many fields is split, and checked as well")
    func split() async throws {
        try await withLibraryCache { library in
            for number in 0..<80 {
                let operation = try library.operation(LibraryCache.query, ["search": .string("\(number)")])
                try await library.write(LibraryCache.books(number..<(number + 2)), operation)
            }
            let report = try library.cache.check()
            #expect(report.problems == [])
            #expect(report.counts.splitFields == 80)
            try await library.cache.compact()
            let operation = try library.operation(LibraryCache.query, ["search": "7"])
            #expect(try library.cache.read(operation).response["books"]?[1]?["title"]?.string == "Book 8")
        }
    }

    /// A change to the tables behind the cache's back, and what the check must say about it.
    enum Fault: CaseIterable {
        case recordRemoved, partRemoved, keyRemoved, nameRemoved, textRemoved, counterBack, changeRemoved, copiedRecord
    }

    @Test("Records that do not fit together are reported with their place", arguments: Fault.allCases)
    func faults(_ fault: Fault) async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(4)
            try await library.fill(4, revision: 1)
            let generation = library.cache.generations.current
            let tables = generation.tables
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            let book = try #require(try tables.record(of: "Book:3", transaction))
            switch fault {
            // A record that is gone and leaves its parts behind.
            case .recordRemoved: try transaction.delete(book, in: tables.records)
            case .partRemoved: try transaction.delete(book + 2, in: tables.records)
            case .keyRemoved: try transaction.delete(Array("Author:1".utf8).rawSpan, in: tables.keys)
            case .nameRemoved: try transaction.delete(Array("title".utf8).rawSpan, in: tables.names)
            case .textRemoved: try transaction.delete(1 as UInt64, in: tables.texts)
            case .counterBack:
                var state = try #require(try GenerationState.read(transaction, tables))
                state.nextRecord = book
                try state.store(&transaction, tables)
            case .changeRemoved: try transaction.delete(1 as UInt64, in: tables.changes)
            case .copiedRecord:
                let bytes = try transaction.get(book, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
                try transaction.put(book + 1, bytes.rawSpan, in: tables.records)
            }
            try transaction.commit()
            let report = try library.cache.check()
            #expect(!report.isSound)
            #expect(report.problems.count == report.problemCount)
        }
    }

    /// Runs `body` with a cache of four books, and a transaction that writes into it past its rules.
    private func withLibrary(
        _ body: (LibraryCache, Tables, consuming WriteTransaction) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(4)
            let generation = library.cache.generations.current
            try await body(
                library, generation.tables, try generation.environment.beginWrite(deadline: .now + .seconds(300)))
        }
    }

    @Test("A reference to an object that no key leads to is a problem")
    func lostObject() async throws {
        try await withLibrary { library, tables, opened in
            var transaction = opened
            let author = try #require(try tables.record(of: "Author:1", transaction))
            try transaction.delete(Array("Author:1".utf8).rawSpan, in: tables.keys)
            try transaction.delete(author, in: tables.records)
            try transaction.commit()
            #expect(
                try library.cache.check().problems.contains {
                    $0.what == "it refers to \(author), which no key leads to"
                })
        }
    }

    @Test("A part that is held twice is a problem, and so is the one that it took the place of")
    func heldTwice() async throws {
        try await withLibrary { library, tables, opened in
            var transaction = opened
            let book = try #require(try tables.record(of: "Book:3", transaction))
            let names = library.cache.generations.current.names
            let notes = try #require(try names.number(of: "notes", transaction, tables))
            var bytes = try transaction.get(book, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
            let (words, parts) = try bytes.withUnsafeBytes { (bytes) throws in
                let record = try RecordView(bytes)
                let list = try record.payload.list(#require(record.value(of: notes)))
                return (list.range, try (0..<list.count).map { try record.payload.record(list[$0]) })
            }
            try #require(parts.count == 3)
            bytes.replaceSubrange(words.lowerBound..<(words.lowerBound + 4), with: bytes[words.suffix(4)])
            seal(&bytes, at: 4) { RecordView.checksum($0, of: book) }
            try transaction.put(book, bytes.rawSpan, in: tables.records)
            try transaction.commit()
            let problems = try library.cache.check().problems.map(\.description)
            #expect(problems == ["record \(parts[0]): nothing holds it", "record \(parts[2]): it is held 2 times"])
        }
    }

    @Test("Two parts of an object that have each other's places are problems, both of them")
    func exchangedParts() async throws {
        try await withLibrary { library, tables, opened in
            var transaction = opened
            let book = try #require(try tables.record(of: "Book:3", transaction))
            let names = library.cache.generations.current.names
            let notes = try #require(try names.number(of: "notes", transaction, tables))
            let cover = try #require(try names.number(of: "cover", transaction, tables))
            var bytes = try transaction.get(book, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
            let (words, held, parts) = try bytes.withUnsafeBytes { (bytes) throws in
                let record = try RecordView(bytes)
                let list = try record.payload.list(#require(record.value(of: notes)))
                let held = [try #require(record.value(of: cover)), list[0]]
                return (list.range, held, try held.map { try record.payload.record($0) })
            }
            func stored(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.littleEndian) { Array($0) } }
            // A field's entry is its number and its value.
            let entry = stored(cover) + stored(held[0].bits)
            let found = (0..<bytes.count).first { bytes[$0...].starts(with: entry) }
            let place = try #require(found)
            bytes.replaceSubrange((place + 4)..<(place + 8), with: stored(held[1].bits))
            bytes.replaceSubrange(words.lowerBound..<(words.lowerBound + 4), with: stored(held[0].bits))
            seal(&bytes, at: 4) { RecordView.checksum($0, of: book) }
            try transaction.put(book, bytes.rawSpan, in: tables.records)
            try transaction.commit()
            let places = try library.cache.check().problems.map(\.place)
            #expect(Set(places) == Set(parts.map { CheckReport.Problem.Place.record($0) }))
        }
    }

    @Test("A part that is not there is a problem of the field that holds it")
    func lostPart() async throws {
        try await withLibrary { library, tables, opened in
            var transaction = opened
            let book = try #require(try tables.record(of: "Book:3", transaction))
            let names = library.cache.generations.current.names
            let field = try #require(try names.number(of: "cover", transaction, tables))
            let bytes = try transaction.get(book, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
            let cover = try bytes.withUnsafeBytes { (bytes) throws in
                let record = try RecordView(bytes)
                return try record.payload.record(#require(record.value(of: field)))
            }
            try transaction.delete(cover, in: tables.records)
            try transaction.commit()
            let places = try library.cache.check().problems.map(\.place)
            #expect(places.contains(.field(record: book, field: field)))
        }
    }

    @Test("A flipped bit is an error at opening, or changes no answer", arguments: [1, 2, 3, 4] as [UInt64])
    func flippedBits(seed: UInt64) async throws {
        try await withTemporaryFolder { base in
            let (folder, copy) = (base.appending(path: "cache"), base.appending(path: "damaged"))
            let library = try LibraryCache(folder)
            let operation = try await library.fill(25)
            for number in 0..<70 {
                let search = try library.operation(LibraryCache.query, ["search": .string("\(number)")])
                try await library.write(LibraryCache.books(number % 20..<(number % 20 + 2)), search)
            }
            if seed % 2 == 0 { try await library.cache.compact() }
            let whole = try library.cache.read(operation).response
            let last = try library.operation(LibraryCache.query, ["search": "69"])
            let other = try library.cache.read(last).response
            try library.cache.close()
            try crashCopy(of: folder, to: copy)
            let file = try dataFile(in: copy)
            let sound = try Data(contentsOf: file)
            var random = SeededNumbers(seed: seed)
            var (refused, unseen) = (0, 0)
            for round in 0..<200 {
                // So that the other seeds' writes find a thread.
                await Task.yield()
                var damaged = sound
                for _ in 0..<(round % 3 == 0 ? 4 : 1) {
                    let place = Int.random(in: 0..<damaged.count, using: &random)
                    damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                }
                try damaged.write(to: file)
                let place = "seed \(seed), round \(round)"
                do {
                    let cache = try RecordCache(folder: copy.path, stamp: "library")
                    unseen += 1
                    #expect(try cache.read(operation).response == whole, "\(place)")
                    #expect(try cache.read(last).response == other, "\(place)")
                    _ = try cache.check()
                    try cache.close()
                } catch let error as RecordError {
                    refused += 1
                    let codes: [RecordError.Code] = [.damaged, .futureFormat, .full]
                    #expect(codes.contains(error.code), "\(place): \(error)")
                }
                // An unsound file must never be mistaken for a sound one the next time.
                try? FileManager.default.removeItem(at: file.deletingLastPathComponent().appending(path: "clean.stamp"))
            }
            #expect(refused > 25)
            #expect(unseen > 10)
        }
    }

    @Test("A generation that has lost its file is damage, and no empty cache takes its place")
    func lostFile() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(3)
            try library.cache.close()
            let file = try dataFile(in: folder)
            try FileManager.default.removeItem(at: file)
            for _ in 0..<2 {
                let error = #expect(throws: RecordError.self) { try LibraryCache(folder) }
                #expect(error?.code == .damaged)
            }
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test("A damaged file stays refused, however often it is opened")
    func staysRefused() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(10)
            try library.cache.close()
            let file = try dataFile(in: folder)
            var bytes = try Data(contentsOf: file)
            let place = try #require(bytes.range(of: Data("Line 6 of".utf8))).lowerBound
            bytes[place] ^= 1
            try bytes.write(to: file)
            for _ in 0..<3 {
                let error = #expect(throws: RecordError.self) { try LibraryCache(folder) }
                #expect(error?.code == .damaged)
            }
        }
    }

    @Test("After an unclean close the next commit starts an epoch")
    func epochAfterCrash() async throws {
        try await withCrash { (copy, position) throws in
            let crashed = try LibraryCache(copy)
            #expect(try crashed.cache.changes(since: position) == .everything)
            let commit = try await crashed.write(LibraryCache.books(0..<6), crashed.operation())
            #expect(commit.position.epoch != position.epoch)
            #expect(try crashed.cache.changes(since: commit.position) == .changes([]))
            #expect(try crashed.cache.changes(since: position) == .everything)
            try expectSound(crashed.cache)
        }
    }

    @Test("After an unclean close a compaction starts an epoch too")
    func epochOfCompaction() async throws {
        try await withCrash { (copy, position) throws in
            let crashed = try LibraryCache(copy)
            try await crashed.cache.compact()
            #expect(try crashed.cache.changes(since: position) == .everything)
            #expect(try crashed.cache.position.epoch != position.epoch)
            try expectSound(crashed.cache)
        }
    }

    @Test("A process that opens and closes after an unclean close, and writes nothing, does not hide lost commits")
    func visitorAfterCrash() async throws {
        try await withCrash { (copy, position) throws in
            try LibraryCache(copy).cache.close()
            let later = try LibraryCache(copy)
            #expect(try later.cache.changes(since: position) == .everything)
            let commit = try await later.write(LibraryCache.books(0..<6), later.operation())
            #expect(commit.position.epoch != position.epoch)
            try later.cache.close()
            let last = try LibraryCache(copy)
            #expect(try last.cache.changes(since: commit.position) == .changes([]))
            try expectSound(last.cache)
        }
    }

    /// Runs `body` with what a crash leaves of a library that is open, and with its position then.
    private func withCrash(_ body: (_ copy: URL, _ position: ChangePosition) async throws -> Void) async throws {
        try await withTemporaryFolder { base in
            let (folder, copy) = (base.appending(path: "cache"), base.appending(path: "crashed"))
            let library = try LibraryCache(folder)
            try await library.fill(5)
            try crashCopy(of: folder, to: copy)
            try await body(copy, library.cache.position)
            try expectSound(library.cache)
        }
    }

    @Test("Any bytes in any table are problems or answers, sealed or not", arguments: [1, 2, 3] as [UInt64])
    func anyBytes(seed: UInt64) async throws {
        try await withLibraryCache { library in
            let operation = try await library.fill(12)
            for number in 0..<70 {
                let search = try library.operation(LibraryCache.query, ["search": .string("\(number)")])
                try await library.write(LibraryCache.books(number % 10..<(number % 10 + 2)), search)
            }
            try await library.cache.compact()
            let generation = library.cache.generations.current
            let tables = generation.tables
            var random = SeededNumbers(seed: seed)
            var problems = 0
            for _ in 0..<300 {
                await Task.yield()
                // Never committed.
                var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let id = UInt64.random(in: 1...60, using: &random)
                    var bytes = try transaction.get(id, in: tables.records)?.withUnsafeBytes { Array($0) } ?? []
                    mangle(&bytes, &random)
                    seal(&bytes, at: 4) { RecordView.checksum($0, of: id) }
                    try transaction.put(id, bytes.rawSpan, in: tables.records)
                case 1:
                    let field = FieldID.random(in: 0...90, using: &random)
                    let root = try #require(try tables.record(of: "QUERY_ROOT", transaction))
                    let key = SplitFieldKey(record: root, field: field)
                    var bytes =
                        try transaction.get(key.bytes.rawSpan, in: tables.fields)?
                        .withUnsafeBytes { Array($0) } ?? []
                    mangle(&bytes, &random)
                    seal(&bytes, at: 0) { key.checksum(of: $0) }
                    try transaction.put(key.bytes.rawSpan, bytes.rawSpan, in: tables.fields)
                case 2:
                    let number =
                        Bool.random(using: &random) ? TextHeap.firstSegment : .random(in: 0...40, using: &random)
                    var bytes = try transaction.get(number, in: tables.texts)?.withUnsafeBytes { Array($0) } ?? []
                    mangle(&bytes, &random)
                    try transaction.put(number, bytes.rawSpan, in: tables.texts)
                default:
                    let key = Array(
                        ["Book:3", "Author:1", "QUERY_ROOT"].randomElement(using: &random)?.utf8 ?? "".utf8)
                    var bytes = key.withUnsafeBytes {
                        StoredNumber.with(.random(in: 0...80, using: &random), under: $0) { Array($0) }
                    }
                    if Bool.random(using: &random) { mangle(&bytes, &random) }
                    try transaction.put(key.rawSpan, bytes.rawSpan, in: tables.keys)
                }
                var check = GenerationCheck(generation, .everything)
                try check.run(transaction)
                problems += check.report.isSound ? 0 : 1
                _ = try? generation.answer(operation, from: .query, transaction)
                var reader = InspectionReader(generation)
                for key in ["QUERY_ROOT", "Book:3", "Book:3.notes[1].marks[0]"] {
                    _ = try? reader.record(key: key, transaction)
                }
                _ = try? reader.types(transaction)
                var changes = RecordChanges(.fresh())
                if let id = try? tables.record(of: "Book:3", transaction) {
                    _ = try? changes.removeEntity(id, leavingTombstone: true, generation, transaction)
                }
            }
            #expect(problems > 150, "seed \(seed)")
        }
    }

    private func mangle(_ bytes: inout [UInt8], _ random: inout SeededNumbers) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.removeLast(Int.random(in: 0...bytes.count, using: &random))
        case 1: bytes += (0..<Int.random(in: 0..<40, using: &random)).map { _ in .random(in: 0...255, using: &random) }
        default:
            for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = .random(in: 0...255, using: &random)
            }
        }
    }

    /// Makes the checksum right, so that what is behind it is looked at.
    private func seal(_ bytes: inout [UInt8], at place: Int, _ sum: (UnsafeRawBufferPointer) -> UInt32) {
        guard bytes.count >= 16 else { return }
        let right = bytes.withUnsafeBytes(sum)
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: right.littleEndian, toByteOffset: place, as: UInt32.self) }
    }
}
