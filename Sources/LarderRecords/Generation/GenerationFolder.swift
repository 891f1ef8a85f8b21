internal import Foundation
internal import LarderLMDB

/// The folder of one partition's record cache: a folder for each generation, named by its number.
///
/// The current generation is the lowest that is not superseded. One of a higher number is what an interrupted compaction
/// left; one of a lower number waits to be removed.
struct GenerationFolder: Sendable {
    let path: String
    let stamp: String
    let options: RecordCache.Options

    func path(of number: Int) -> String { "\(path)/\(number)" }

    func numbers() -> [Int] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.compactMap(Int.init).filter { $0 > 0 }.sorted()
    }

    /// Opens the current generation; makes the first unless the cache is read-only.
    func openCurrent() throws -> Generation {
        // Another process may supersede and remove a generation while it is being opened here.
        var failure: (any Error)?
        for _ in 0..<8 {
            let numbers = numbers()
            do {
                for number in numbers {
                    let generation = try open(number)
                    if try !generation.isSuperseded() { return generation }
                    try generation.environment.close()
                }
                if let newest = numbers.last {
                    // All are superseded: whoever did so had no time to make the next.
                    guard !options.isReadOnly else { break }
                    return try make(newest + 1)
                }
                guard !options.isReadOnly else {
                    throw RecordError(.missing, "there is no record cache at \(path); write to it first")
                }
                return try make(1)
            } catch let error as LMDBError where error.code == .missing && !numbers.isEmpty {
                failure = error
            }
        }
        throw failure ?? RecordError(.missing, "there is no current record cache at \(path)")
    }

    func open(_ number: Int) throws -> Generation {
        let environment = try Environment(
            folder: path(of: number), tables: Tables.definitions, options: options.environment)
        guard let tables = Tables(environment) else {
            throw RecordError(.damaged, "the record cache at \(path(of: number)) lacks tables; remove it and fetch again")
        }
        let generation = Generation(number: number, environment: environment, tables: tables)
        try prepare(generation)
        return generation
    }

    private func make(_ number: Int) throws -> Generation {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return try open(number)
    }

    /// Writes the counters of a new generation, and checks those and the stamp of an old one.
    private func prepare(_ generation: Generation) throws {
        let stampKey = Array("stamp".utf8)
        let reading = try generation.environment.beginRead()
        if try GenerationState.read(reading, generation.tables) != nil {
            var owner = "nobody"
            if let stored = try reading.get(stampKey.span.bytes, in: generation.tables.meta) {
                owner = stored.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
            }
            guard owner == stamp else {
                throw RecordError(.missing, "the record cache at \(path) belongs to \(owner), not to \(stamp)")
            }
            return
        }
        guard try reading.entryCount(of: generation.tables.records) == 0 else { throw RecordError.damagedState }
        guard !options.isReadOnly else { throw RecordError(.missing, "the record cache at \(path) is empty") }
        try generation.environment.write(deadline: .now + options.lockDeadline) { transaction in
            guard try GenerationState.read(transaction, generation.tables) == nil else { return }
            try GenerationState(epoch: .random(in: .min ... .max)).store(&transaction, generation.tables)
            let value = Array(stamp.utf8)
            try transaction.put(stampKey.span.bytes, value.span.bytes, in: generation.tables.meta)
        }
    }

    /// Removes what is left of generations below the current one, and of work on those above it.
    func removeSuperseded(below number: Int) {
        for old in numbers() where old < number { try? FileManager.default.removeItem(atPath: path(of: old)) }
    }
}

extension Generation {
    func isSuperseded() throws -> Bool {
        let transaction = try environment.beginRead()
        return try GenerationState.read(transaction, tables)?.isSuperseded ?? false
    }
}
