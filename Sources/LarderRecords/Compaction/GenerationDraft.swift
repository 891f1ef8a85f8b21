internal import Foundation
internal import LarderLMDB

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A generation that is being made, in a folder that nobody else looks into until `finish` gives it its name.
struct GenerationDraft {
    let number: Int
    private let folder: GenerationFolder
    private let temporary: String
    private let environment: Environment
    private let tables: Tables

    /// - Parameter start: Puts into the draft's folder what it begins with, a data file; without it, it begins empty.
    init(_ number: Int, in folder: GenerationFolder, from start: ((String) throws -> Void)? = nil) throws {
        self.number = number
        self.folder = folder
        temporary = "\(folder.path)/\(number).draft-\(UUID().uuidString)"
        var options = folder.options.environment
        // Closing makes all of it durable at once.
        options.durability = .none
        do {
            if let start {
                try FileSystem.makeFolder(temporary)
                try start(temporary)
            }
            environment = try Environment(folder: temporary, tables: Tables.definitions, options: options)
        } catch {
            try? FileManager.default.removeItem(atPath: temporary)
            throw error
        }
        guard let tables = Tables(environment) else { throw RecordError.damagedState }
        self.tables = tables
    }

    /// Runs `body` in a write transaction of the draft, and commits it.
    func fill(_ body: (inout WriteTransaction, Tables) throws -> Void) throws {
        do {
            try environment.write(deadline: .now + folder.options.lockDeadline) { transaction in
                try body(&transaction, tables)
            }
        } catch {
            abandon()
            throw error
        }
    }

    /// Leaves nothing of the draft, as far as that can be done: what stays is a leftover, which the next compaction
    /// removes.
    func abandon() {
        try? environment.close()
        try? FileManager.default.removeItem(atPath: temporary)
        try? FileManager.default.removeItem(atPath: packed)
    }

    /// Makes everything durable, and gives the draft its name if nobody has taken that.
    ///
    /// - Returns: False where the name is another's, or the draft was taken for a leftover: nothing of it stays then.
    func place() throws -> Bool {
        do {
            try environment.close()
            try FolderSync.run(temporary)
            guard rename(temporary, folder.path(of: number)) == 0 else {
                let status = errno
                abandon()
                guard [EEXIST, ENOTEMPTY, ENOENT].contains(status) else {
                    throw RecordError(
                        .storage, "a new generation of the record cache could not be put in place (errno \(status))")
                }
                return false
            }
            try FolderSync.run(folder.path)
            return true
        } catch {
            abandon()
            throw error
        }
    }

    private var packed: String { temporary + "-packed" }

    /// Makes everything durable, and gives the draft its name. Cleans up where another process was quicker.
    ///
    /// - Parameter packs: Leaves out the pages that are free, and walks all others: what takes the place of another
    ///   generation is looked at first.
    /// - Returns: False where another process has removed the draft, which it took for a leftover.
    func finish(packs: Bool) throws -> Bool {
        do {
            let whole = packs ? packed : temporary
            if packs {
                try environment.copy(to: whole, compacting: true)
                try environment.close()
                try FileManager.default.removeItem(atPath: temporary)
                // Opened once, so that closing it leaves the stamp of a clean close.
                try Environment(folder: whole, tables: Tables.definitions, options: folder.options.environment).close()
            } else {
                try environment.close()
                // Its file has a name before it has its own, as after copying: without the file it cannot be opened.
                try FolderSync.run(whole)
            }
            defer { try? FileManager.default.removeItem(atPath: whole) }
            guard rename(whole, folder.path(of: number)) == 0 || errno == EEXIST || errno == ENOTEMPTY else {
                if errno == ENOENT { return false }
                throw RecordError(
                    .storage, "a new generation of the record cache could not be put in place (errno \(errno))")
            }
            try FolderSync.run(folder.path)
            return true
        } catch {
            abandon()
            throw error
        }
    }
}
