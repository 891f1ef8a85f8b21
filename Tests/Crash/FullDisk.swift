import Foundation
import Larder
import LarderRecords

/// Works on a store while nothing can be written, and again when there is room.
struct FullDisk {
    enum Work: String {
        /// Makes a new store.
        case open
        case write, update, remove, compact, clear
        /// Closes, and opens what was there; or what lost LMDB's table of readers.
        case reopen, reopenWithoutTable
        /// Opens for reading what lost its lock files.
        case look
    }

    let folder: URL
    let work: Work
    let room: ScarceRoom

    private var reopens: Bool { work == .reopen || work == .reopenWithoutTable }

    func run() async throws {
        if work == .open { return try await openFirst() }
        if work == .look { return try await look() }
        var (store, app) = try open()
        try await app.write(library, json: libraryData(1))
        if reopens { try store.close() }
        if work == .reopenWithoutTable {
            try FileManager.default.removeItem(at: folder.appending(path: "records/main/1/lock.mdb"))
        }
        try room.take()
        do {
            if reopens { (store, app) = try open() } else { try await perform(app) }
            say("done")
        } catch {
            say("refused " + code(error))
        }
        if !reopens { try report(app) }
        try room.giveBack()
        if reopens {
            try? store.close()
            (store, app) = try open()
        } else {
            try await perform(app)
        }
        try report(app)
        try store.close()
        try names()
    }

    private func perform(_ app: Partition) async throws {
        switch work {
        case .open, .look, .reopen, .reopenWithoutTable: break
        case .write: try await app.write(library, json: libraryData(2))
        case .update:
            try await app.update(library) { data in
                data = try Value(json: libraryData(2))
            }
        case .remove: try await app.remove(type: "Book", as: .deleted)
        case .compact: _ = try await app.records.compact()
        case .clear: _ = try await app.records.clear()
        }
    }

    private func openFirst() async throws {
        try room.take()
        do {
            _ = try open()
            say("done")
        } catch {
            say("refused " + code(error))
        }
        try room.giveBack()
        let (store, app) = try open()
        try await app.write(library, json: libraryData(1))
        try report(app)
        try store.close()
        try names()
    }

    private func look() async throws {
        let (first, app) = try open()
        try await app.write(library, json: libraryData(1))
        try first.close()
        let generation = folder.appending(path: "records/main/1")
        for name in ["lock.mdb", "open.lock", "write.lock"] {
            try FileManager.default.removeItem(at: generation.appending(path: name))
        }
        try room.take()
        var options = Store.Options()
        options.isReadOnly = true
        let (store, reader) = try open(options)
        say("reads \(libraryNumber(try reader.read(library)))")
        try store.close()
        try room.giveBack()
    }

    private func code(_ error: any Error) -> String {
        (error as? LarderError)?.code.rawValue ?? (error as? RecordError)?.code.rawValue ?? "\(error)"
    }

    /// What is stored: the number that all books bear, and whether all is sound.
    private func report(_ app: Partition) throws {
        let answer = try? app.read(library)
        say("reads " + (answer.map(libraryNumber) ?? "nothing"))
        let report = try app.records.check()
        say(report.isSound ? "sound" : "unsound: \(report.problems)")
    }

    /// What the folder of the cache holds, but for locks.
    private func names() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "records/main").path)
        say("holds " + names.sorted().joined(separator: " "))
    }
}

private let library = GraphQLOperation("query Library { books { id title } }")

/// Books enough for a change of all to need many pages, which all bear one number.
private func libraryData(_ number: Int) -> [UInt8] {
    let text = String(repeating: "\(number)", count: 100)
    let books = (0..<2_000).map { #"{"id":"\#($0)","title":"\#(text)"}"# }
    return Array(#"{"books":[\#(books.joined(separator: ","))]}"#.utf8)
}

private func libraryNumber(_ library: Response) -> String {
    let titles = library["books"]?.elements.compactMap { $0["title"]?.string } ?? []
    guard let first = titles.first else { return "no books" }
    return titles.count == 2_000 && titles.allSatisfy { $0 == first } ? "\(first.prefix(1))" : "half"
}
