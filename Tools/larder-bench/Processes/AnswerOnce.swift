import ArgumentParser
import Foundation
import Larder

/// A program that opens a store and reads one answer, as a program does that is started.
struct AnswerOnce: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "answer-once", abstract: "Opens a store, reads an answer, and says how long that took.",
        shouldDisplay: false)

    @ArgumentParser.Argument(
        help: "A folder with the store, the schema and the document; without one, nothing is done.")
    var folder: String?

    func run() throws {
        guard let folder else { return }
        let url = URL(filePath: folder)
        func text(_ name: String) throws -> String {
            String(decoding: try Data(contentsOf: url.appending(path: name)), as: UTF8.self)
        }
        var marks: [(String, SuspendingClock.Instant)] = [("", .now)]
        func mark(_ name: String) { marks.append((name, .now)) }
        let (schema, document) = (try text("schema.graphqls"), try text("operation.graphql"))
        mark("texts")
        let store = try Store.open(at: url.appending(path: "store"), schemaText: [schema])
        mark("schema")
        let app = try store.partition()
        mark("partition")
        let operation = GraphQLOperation(document)
        let answer = try app.read(operation)
        mark("read")
        guard answer.isComplete else { throw BenchFailure("the store does not answer what was written") }
        keep(try app.read(operation))
        mark("again")
        let times = zip(marks, marks.dropFirst()).map { before, after -> String in
            let time = before.1.duration(to: after.1).components
            return "\(after.0) \(Double(time.seconds) + Double(time.attoseconds) * 1e-18)"
        }
        print(times.joined(separator: "\n"))
        // As a program that the system ends.
        Foundation.exit(0)
    }
}
