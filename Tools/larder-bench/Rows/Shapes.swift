import Foundation
import LarderRecords

/// The rows of one response, on responses of other shapes.
extension Bench {
    /// Runs rows with each of the shapes, whose name they get.
    private func forEachShape(
        _ name: String, _ row: (Bench) async throws -> [BenchRow]
    ) async throws -> [BenchRow] {
        var rows: [BenchRow] = []
        for (shape, input) in try BenchInput.shapes() {
            var bench = self
            bench.input = input
            rows += try await row(bench).map { row in
                var row = row
                row.name = "\(name)-\(shape)"
                row.note = ["\(input.source), \(input.body.count) bytes", row.note].compactMap { $0 }
                    .joined(separator: "; ")
                return row
            }
        }
        return rows
    }

    func parseShapes() async throws -> [BenchRow] {
        try await forEachShape("parse") { bench in
            try await bench.parse().map { row in
                var row = row
                row.reach = .ratio(0.25)
                return row
            }
        }
    }

    func commitShapes() async throws -> [BenchRow] { try await forEachShape("commit") { try await $0.commit() } }

    /// What a program sees of an answer: reading it, and touching every field of it.
    func visitShapes() async throws -> [BenchRow] {
        try await forEachShape("read-visit") { try await $0.readAndVisit() }
    }
}
