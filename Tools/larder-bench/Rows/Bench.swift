import Foundation
import LarderRecords

/// What the rows work with.
struct Bench {
    enum Row: String, CaseIterable {
        case parse, commit, recommit, read, visit
        case readKept = "read-kept"
        case readOne = "read-one"
        case changeOne = "change-one"
        case decode, watch
        case scale, open, walk, size
        case jsonRows = "json-rows"
        case allocations
        case enqueue
        case enqueueMany = "enqueue-many"
        case drain, layers
        case scroll
        case listInserts = "list-inserts"
        case enqueueWatched = "enqueue-watched"
        case readers
        case hotObject = "hot-object"
        case watchWhole = "watch-whole"
        case openQueue = "open-queue"
        case coldStart = "cold-start"
        case switching = "switch"
        case seal
        case queueUploads = "queue-uploads"
        case resumeUpload = "resume-upload"
        case largeFile = "large-file"
        case transferMemory = "transfer-memory"
        case longList = "long-list"
        case wholeList = "whole-list"
        case collect, day
        case passwordProof = "sign-in"
        case sharedRefresh = "shared-refresh"
        case requestSession = "request-session"
        case event, events, sync, resubscribe
        case parseShapes = "parse-shapes"
        case commitShapes = "commit-shapes"
        case visitShapes = "visit-shapes"
        case upkeepWaits = "upkeep-waits"
        case openKilled = "open-killed"
        case firstAnswer = "first-answer"
        case environments
        case removeNothing = "remove-nothing"
        case noDeadLetters = "no-dead-letters"
        case manyOperations = "many-operations"
    }

    var input: BenchInput
    var rounds: Int
    /// Empty at first; everything is made in it.
    var folder: String
    var largest: Int

    func run(_ row: Row) async throws -> [BenchRow] {
        switch row {
        case .parse: try await parse()
        case .commit: try await commit()
        case .recommit: try await recommit()
        case .read: try await read()
        case .visit: try await visit()
        case .readKept: try await readKeepingUse()
        case .readOne: try await readOne()
        case .changeOne: try await changeOne()
        case .decode: try await decode()
        case .watch: try await watch()
        case .scale: try await scale()
        case .open: try await open()
        case .walk: try await walk()
        case .size: try await size()
        case .jsonRows: try await jsonRows()
        case .allocations: try await allocations()
        case .enqueue: try await enqueue()
        case .enqueueMany: try await enqueueMany()
        case .drain: try await drain()
        case .layers: try await layers()
        case .scroll: try await scroll()
        case .listInserts: try await listInserts()
        case .enqueueWatched: try await enqueueWatched()
        case .readers: try await readers()
        case .hotObject: try await hotObject()
        case .watchWhole: try await watchWhole()
        case .openQueue: try await openQueue()
        case .coldStart: try await coldStart()
        case .switching: try await switching()
        case .seal: try await seal()
        case .queueUploads: try await queueUploads()
        case .resumeUpload: try await resumeUpload()
        case .largeFile: try await largeFile()
        case .transferMemory: try await transferMemory()
        case .longList: try await longList()
        case .wholeList: try await wholeList()
        case .collect: try await collecting()
        case .day: try await day()
        case .passwordProof: try await passwordProof()
        case .sharedRefresh: try await sharedRefresh()
        case .requestSession: try await requestSession()
        case .event: try await event()
        case .events: try await events()
        case .sync: try await sync()
        case .resubscribe: try await resubscribe()
        case .parseShapes: try await parseShapes()
        case .commitShapes: try await commitShapes()
        case .visitShapes: try await visitShapes()
        case .upkeepWaits: try await upkeepWaits()
        case .openKilled: try await openKilled()
        case .firstAnswer: try await firstAnswer()
        case .environments: try await manyEnvironments()
        case .removeNothing: try await removeNothing()
        case .noDeadLetters: try await noDeadLetters()
        case .manyOperations: try await manyOperations()
        }
    }

    /// A path that nothing is at yet.
    func freshPath(_ name: String) -> String { "\(folder)/\(name)-\(UUID().uuidString)" }

    /// Runs the body with a cache that holds the input's response.
    func withInputCache<Result>(
        keepsUse: Bool = true, _ body: (RecordCache) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("input")
        defer { remove(path) }
        var options = RecordCache.Options()
        options.keepsUse = keepsUse
        let cache = try RecordCache(folder: path, stamp: "bench", options: options)
        let parsed = try ParsedResponse.parse(input.body, along: input.operation.layout)
        _ = try await cache.write(parsed, of: input.operation)
        let result = try await body(cache)
        try cache.close()
        return result
    }

    func remove(_ path: String) { try? FileManager.default.removeItem(atPath: path) }
}

/// The figures would be of something else.
struct BenchFailure: Error, CustomStringConvertible {
    var description: String
    init(_ description: String) { self.description = description }
}
