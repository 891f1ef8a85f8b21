import LarderFiles
import LarderLMDB

/// A generation that is being made, in a folder that no reader looks into until `finish` gives it its name.
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
        temporary = "\(folder.path)/\(number).draft-\(FileSystem.uniqueSuffix())"
        var options = folder.options.environment
        // Closing makes all of it durable at once.
        options.durability = .none
        do {
            if let start {
                try folder.options.files.makeFolder(temporary)
                try start(temporary)
            }
            environment = try Environment(folder: temporary, tables: Tables.definitions, options: options)
        } catch {
            try? folder.options.files.removeTree(temporary)
            throw error
        }
        guard let tables = Tables(environment) else { throw RecordError.damagedState }
        self.tables = tables
    }

    /// A draft that lies in its folder whole.
    private init(_ number: Int, in folder: GenerationFolder, at path: String) throws {
        (self.number, self.folder, temporary) = (number, folder, path)
        var options = folder.options.environment
        options.durability = .none
        options.mustExist = true
        environment = try Environment(folder: path, tables: Tables.definitions, options: options)
        guard let tables = Tables(environment) else { throw RecordError.damagedState }
        self.tables = tables
    }

    /// The same draft in another folder, without the pages that are free, all others walked: what takes the place of
    /// another generation is looked at first. Durable on return. This one is removed.
    func packed() throws -> GenerationDraft {
        do {
            try environment.copy(to: packedPath, compacting: true)
            try environment.close()
            try files.removeTree(temporary)
            return try GenerationDraft(number, in: folder, at: packedPath)
        } catch {
            abandon()
            throw error
        }
    }

    /// Makes durable what was written so far, so that little is left for `place`.
    func synchronize() throws {
        do { try environment.synchronize() } catch {
            abandon()
            throw error
        }
    }

    /// Runs `body` in a write transaction of the draft, and commits it.
    func fill(_ body: (inout WriteTransaction, Tables) throws -> Void) throws {
        do {
            try environment.write(deadline: .now + folder.options.lockTimeout) { transaction in
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
        try? files.removeTree(temporary)
        try? files.removeTree(packedPath)
    }

    /// Makes everything durable, and gives the draft its name unless that is taken.
    ///
    /// - Returns: False where the name is another's, or the draft was taken for a leftover: nothing of it stays then.
    func place() throws -> Bool {
        do {
            try environment.close()
            try files.synchronizeFolder(temporary)
            do throws(FileError) { try files.rename(temporary, folder.path(of: number)) } catch {
                abandon()
                guard [.exists, .missing].contains(error.code) else { throw Self.notPlaced(error) }
                return false
            }
            try files.synchronizeFolder(folder.path)
            return true
        } catch {
            abandon()
            throw error
        }
    }

    private var files: FileSystem { folder.options.files }

    private static func notPlaced(_ error: FileError) -> RecordError {
        RecordError(.storage, "A new generation of the record cache could not be put in place.", cause: error)
    }

    private var packedPath: String { temporary + "-packed" }

    /// Makes everything durable, and gives the draft its name, which another's may have by then.
    ///
    /// - Returns: False where another process has removed the draft, which it took for a leftover.
    func finish() throws -> Bool {
        do {
            try environment.close()
            // Its file has a name before it has its own, as after copying: without the file it cannot be opened.
            try files.synchronizeFolder(temporary)
            defer { try? files.removeTree(temporary) }
            do throws(FileError) { try files.rename(temporary, folder.path(of: number)) } catch {
                if error.code == .missing { return false }
                guard error.code == .exists else { throw Self.notPlaced(error) }
            }
            try files.synchronizeFolder(folder.path)
            return true
        } catch {
            abandon()
            throw error
        }
    }
}
