import Foundation
import Larder

/// Looks whether what the tools have done is there after a power cut; see `ToolLoad`.
package struct ToolAftermath: Sendable {
    let root: URL
    private let words: [[String]]

    package init(_ remains: Remains) {
        root = remains.root
        words = remains.marks.map { $0.split(separator: " ").map(String.init) }
    }

    /// What is not as it must be.
    package func problems() async -> [String] {
        var problems: [String] = []
        do {
            try await checkKeys(&problems)
            try checkCache(&problems)
            for line in words where line.first == "backup" {
                let name = line.last ?? ""
                try StoreBackup(at: root.appending(path: ToolLoad.backups).appending(path: name)).verify()
            }
        } catch { problems.append("\(error)") }
        return problems
    }

    private func checkKeys(_ problems: inout [String]) async throws {
        let marked = words.filter { $0.first == "key" }.compactMap(\.last)
        let provider = FileKeyProvider(besides: root.appending(path: "store"))
        guard FileManager.default.fileExists(atPath: provider.file.path) else {
            if !marked.isEmpty { problems.append("the key file is lost") }
            return
        }
        // Whatever has its name is whole.
        _ = try await provider.keys(within: .seconds(30))
        let found = try Data(contentsOf: provider.file).base64EncodedString()
        if marked.dropLast().contains(found) { problems.append("the key file is an earlier one") }
    }

    private func checkCache(_ problems: inout [String]) throws {
        let last = words.last { ["stars", "restoring", "restored", "damaging", "replaced"].contains($0.first) }
        guard let last, last.first != "damaging" else { return }
        let store = try Store.open(at: root.appending(path: "store"), schemaText: [PowerLossLoad.schema])
        let stars = (try? store.partition().read("Recipe:plain", PowerLossLoad.card))?["stars"]?.int
        // What was written since the last mark may be there as well, and is more.
        switch last.first {
        case "stars":
            let least = last.last.flatMap { Int64($0) } ?? 0
            if stars.map({ $0 < least }) ?? true { problems.append("\(least) stars were stored, not \(stars ?? -1)") }
        case "restored": if stars != 1 { problems.append("a cache with one star was brought back, not \(stars ?? -1)") }
        case "replaced": if stars.map({ $0 < 4 }) ?? false { problems.append("a cache that was replaced is back") }
        default: if stars == nil { problems.append("the cache that is brought back is lost") }
        }
        try store.close()
    }
}
