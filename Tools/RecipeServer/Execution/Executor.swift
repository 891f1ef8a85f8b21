import LarderGraphQL

/// Executes operations over a kitchen, as section 6 of the specification says. Fields run one after the other.
struct Executor {
    let schema: SchemaIndex

    struct Request: Sendable {
        var document: String
        var operationName: String?
        var variables: [String: Value]
    }

    struct Answer: Sendable {
        /// nil where the request failed before anything was executed.
        var data: ResponseValue?
        var errors: [ExecutionError]

        var json: [UInt8] {
            var fields: [(String, ResponseValue)] = []
            if !errors.isEmpty { fields.append(("errors", .list(errors.map(\.response)))) }
            if let data { fields.append(("data", data)) }
            return ResponseValue.object(fields).json
        }
    }

    /// An operation that can be executed.
    struct Prepared {
        let operation: OperationDefinition
        let fragments: [String: FragmentDefinition]
        let variables: [String: Value]
    }

    func prepare(_ request: Request) throws(ExecutionError) -> Prepared {
        let document: Document
        do {
            document = try Document(parsing: request.document, limits: ParserLimits(nesting: 60, tokens: 100_000))
        } catch {
            throw ExecutionError(error.message, at: error.location, code: "GRAPHQL_PARSE_FAILED")
        }
        let operation = try operation(request.operationName, in: document)
        do throws(ExecutionError) {
            let fragments = try RequestValidation(schema: schema, document: document).validate(operation)
            let variables = try Coercion(schema: schema).variables(operation.variables, from: request.variables)
            return Prepared(operation: operation, fragments: fragments, variables: variables)
        } catch {
            throw ExecutionError(error.message, at: error.location, code: error.code ?? "GRAPHQL_VALIDATION_FAILED")
        }
    }

    func execute(_ prepared: Prepared, on kitchen: inout Kitchen) -> Answer {
        guard let type = schema.rootType(of: prepared.operation.kind), prepared.operation.kind != .subscription else {
            return Answer(data: nil, errors: [ExecutionError("Subscriptions are not served")])
        }
        var run = Run(schema: schema, fragments: prepared.fragments, variables: prepared.variables)
        let root: Node = prepared.operation.kind == .mutation ? .mutation : .query
        do {
            let data = try run.object(root, type, [prepared.operation.selections], path: [], on: &kitchen)
            return Answer(data: data, errors: run.errors)
        } catch {
            return Answer(data: .null, errors: run.errors)
        }
    }

    private func operation(_ name: String?, in document: Document) throws(ExecutionError) -> OperationDefinition {
        let candidates = document.operations.filter { name == nil || $0.name == name }
        guard let operation = candidates.first, candidates.count == 1 else {
            let message =
                name.map { "There is no single operation \($0)" }
                ?? (candidates.isEmpty ? "The document has no operation" : "Which operation? Give its operationName")
            throw ExecutionError(message, code: "OPERATION_RESOLUTION_FAILURE")
        }
        return operation
    }
}
