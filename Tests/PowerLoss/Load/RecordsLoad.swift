package import Foundation
import Larder

/// A program that stores answers, and has nothing to queue, in a store of which not even the folders above are there.
/// It gives its schema as text, so that the compiled schema is the first that is kept in the store. It marks how many
/// stars were closed upon.
package struct RecordsLoad: Sendable {
    let folder: URL
    let marks: Marks

    /// - Parameter folder: Is made, with two below it.
    package init(folder: URL, marks: Marks) {
        (self.folder, self.marks) = (Self.store(in: folder), marks)
    }

    private static func store(in folder: URL) -> URL { folder.appending(path: "data/app") }

    package func run() async throws {
        for stars in 1...2 {
            let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
            let data: Value = ["title": "Porridge", "stars": .int(Int64(stars))]
            try await store.partition().write("Recipe:plain", PowerLossLoad.card, data)
            try store.close()
            marks("closed", "\(stars)")
        }
    }

    /// What is not as it must be.
    package static func problems(_ remains: Remains) throws -> [String] {
        let promised = remains.words.last(where: { $0.first == "closed" })?.last.flatMap { Int64($0) } ?? 0
        let store = try Store.open(at: Self.store(in: remains.store), schemaText: [PowerLossLoad.schema])
        defer { try? store.close() }
        let stars = (try? store.partition().read("Recipe:plain", PowerLossLoad.card))?["stars"]?.int ?? 0
        return stars < promised ? ["\(promised) stars were closed upon, and \(stars) are there"] : []
    }
}
