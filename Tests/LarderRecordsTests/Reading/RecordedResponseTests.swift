import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite(
    "Real schemas and responses", .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"),
    .timeLimit(.minutes(10)))
struct RecordedResponseTests {
    private func text(_ name: String) throws -> String { String(decoding: try SharedData.bytes(name), as: UTF8.self) }

    /// What a program sees of a response: without `__typename`s that it did not ask for.
    private func visible(_ value: Value) -> Value {
        switch value {
        case .object(let members): .object(members.filter { $0.key != "__typename" }.mapValues(visible))
        case .list(let elements): .list(elements.map(visible))
        default: value
        }
    }

    @Test("The recorded GitHub response is written, reopened and read back equal")
    func gitHub() async throws {
        let schema = try SchemaIndex(parsing: text("github/schema.graphqls"))
        let document = try Document(parsing: text("github/IssuesAndCommentsForRepository.graphql"))
        let operation = try CompiledOperation(operation: nil, in: document, schema).bound()
        let body = try SharedData.bytes("github/IssuesAndCommentsForRepository.json")
        try await withTemporaryFolder { folder in
            let sample = try SampleCache(schema, path: folder.appending(path: "records").path)
            let response = String(decoding: body, as: UTF8.self)
            try await sample.write(operation, response: response)
            let again = try await sample.write(operation, response: response)
            #expect(again.changes.isEmpty)
            try sample.reopen()
            let answer = try sample.cache.read(operation).response
            #expect(answer.missing == [])
            guard case .object(let envelope) = try Value(json: body), let data = envelope["data"] else {
                Issue.record("the recorded response has no data")
                return
            }
            #expect(try visible(Value(json: answer.json)) == visible(data))
            #expect(try answer == ParsedResponse.parse(body, along: operation.layout).assembled())
            try sample.cache.close()
        }
    }

    @Test("Every Star Wars query is answered by a made-up server, written, reopened and read back equal")
    func starWars() async throws {
        let folder = SharedData.folder.appending(path: "starwars")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".graphql") }.sorted()
        let document = try Document(parsing: names.map { try text("starwars/\($0)") }.joined(separator: "\n"))
        let schema = try SchemaIndex(parsing: text("starwars/schema.graphqls"))
        for operation in document.operations where operation.kind == .query {
            let compiled = try CompiledOperation(operation: operation.name, in: document, schema)
            var variables: [String: Value] = [:]
            for variable in operation.variables {
                let name = "\(variable.type)"
                variables[variable.name] =
                    name.hasPrefix("Boolean")
                    ? .boolean(true)
                    : name.contains("Float")
                        ? .list([.list([.float(1.5)])])
                        : name.hasPrefix("Episode") ? .string("EMPIRE") : .string("1")
            }
            let bound = try compiled.bound(variables)
            try await withTemporaryFolder { folder in
                let sample = try SampleCache(schema, path: folder.appending(path: "records").path)
                for seed in UInt64(0)..<5 {
                    let answers = PlannedAnswers(bound, seed: seed)
                    let body = Array("{\"data\":\(answers.object(bound.layout.plan.root, identity: ""))}".utf8)
                    let parsed = try ParsedResponse.parse(body, along: bound.layout)
                    _ = try await sample.cache.write(parsed, of: bound)
                    try sample.reopen()
                    let answer = try sample.cache.read(bound).response
                    #expect(try answer == parsed.assembled(), "\(operation.name ?? "") seed \(seed)")
                }
                try sample.cache.close()
            }
        }
    }
}

/// Makes up a response along a plan; the same field of the same object is the same under all its aliases.
private struct PlannedAnswers {
    let operation: BoundOperation
    let seed: UInt64
    private var plan: Plan { operation.layout.plan }

    init(_ operation: BoundOperation, seed: UInt64) {
        self.operation = operation
        self.seed = seed
    }

    func object(_ selection: Int, identity: String) -> String {
        var random = SeededNumbers(seed: seed, identity)
        guard let type = plan.selections[selection].types.randomElement(using: &random) else { return "null" }
        let members = plan.cases[type.caseIndex].fields.map { index in
            let field = plan.fields[index]
            let place = identity + "/" + (field.key.map { operation.binding.fieldKeys[$0] } ?? "")
            return "\"\(field.responseKey)\":" + value(field, level: 0, type.name, place)
        }
        return "{" + members.joined(separator: ",") + "}"
    }

    private func value(_ field: FieldPlan, level: Int, _ type: String, _ place: String) -> String {
        var random = SeededNumbers(seed: seed, place)
        if !field.type.isNonNull(level: level), Int.random(in: 0..<6, using: &random) == 0 { return "null" }
        if level < field.type.listDepth {
            let elements = (0..<Int.random(in: 0...3, using: &random)).map {
                value(field, level: level + 1, type, place + ".\($0)")
            }
            return "[" + elements.joined(separator: ",") + "]"
        }
        let number = random.next() % 1_000_000
        return switch field.content {
        case .typename: "\"\(type)\""
        case .leaf(.int): "\(number)"
        case .leaf(.float): "\(number).5"
        case .leaf(.boolean): number % 2 == 0 ? "true" : "false"
        case .leaf: "\"\(field.name) \(number)\""
        case .object(let selection): object(selection, identity: place)
        }
    }
}
