import Foundation
import Larder
import LarderOperations
import LarderRecords

/// Opens a store that the power was taken from after a `FaultLoad`, and looks whether it keeps what was promised.
package struct FaultAftermath: Sendable {
    let folder: URL
    private let words: [[String]]

    package init(_ remains: Remains) {
        (folder, words) = (remains.store, remains.words)
    }

    /// What is not as it must be.
    package func problems() -> [String] {
        var problems: [String] = []
        do {
            let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
            let app = try store.partition()
            let cache = try app.records.check()
            if !cache.isSound {
                problems.append("the cache is unsound: \(cache.problems.first.map { "\($0)" } ?? "?")")
            }
            for line in words where line.count == 2 {
                switch line[0] {
                case "accepted", "present":
                    if try !isThere(line[1], app) { problems.append("mutation \(line[1]) was \(line[0]) and is lost") }
                case "absent":
                    if try isThere(line[1], app) { problems.append("mutation \(line[1]) was absent and is there") }
                default: break
                }
            }
            let closed = words.last(where: { $0.first == "closed" })?.last.flatMap { Int64($0) } ?? 0
            let stars = (try? app.read("Recipe:plain", PowerLossLoad.card))?["stars"]?.int ?? 0
            if stars < closed { problems.append("\(closed) stars were closed upon, and \(stars) are there") }
            try store.close()
            guard FileManager.default.fileExists(atPath: folder.path + "/\(OperationsDatabase.fileName)") else {
                return problems
            }
            let database = try OperationsDatabase(folder: folder)
            problems += try database.check().problems.map { "the queue is unsound: \($0)" }
            try database.close()
        } catch { problems.append("\(error)") }
        return problems
    }

    private func isThere(_ id: String, _ app: Partition) throws -> Bool {
        guard let id = MutationID(id) else { return false }
        return try app.mutation(id).status() != nil
    }
}
