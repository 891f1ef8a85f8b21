import Crypto
import LarderFiles
package import LarderGraphQL

/// An operation or a fragment of a document, checked against a schema, from which plans are made as its variables ask.
///
/// Compile it once and keep it: everything that does not depend on variables is worked out here.
package final class CompiledOperation: Sendable {
    package enum Subject: Sendable {
        case operation(OperationDefinition)
        case fragment(FragmentDefinition)
    }

    package let subject: Subject
    package let schema: SchemaIndex
    /// What is sent to a server: the operation with the fields that the cache adds; empty for a fragment.
    package let sentText: String
    /// SHA-256 of `sentText` as 64 lowercase hexadecimal digits.
    package let sentHash: String
    /// The one operation or fragment and the fragments that it uses: what is added for the cache depends on what else
    /// a document selects, and must be the same in what is sent and in the plans.
    private let document: Document
    /// How the added fields are named in what is sent.
    private let added: AddedFields?
    private let conditionVariables: [String]
    private let documentSize: Int
    private let layouts = Locked(RecentlyUsed<LayoutKey, PlanLayout>(limit: CompiledOperation.layoutLimit))
    /// In bytes. Outcomes of conditions are few in practice; a program that tries thousands does not fill the memory.
    private static let layoutLimit = 8 << 20

    private struct LayoutKey: Hashable {
        /// The values of the condition variables.
        let conditions: [Bool]
        let exposesAdded: Bool
    }

    /// - Parameter name: Which operation; may be nil where the document has only one.
    package convenience init(
        operation name: String?, in document: Document, _ schema: SchemaIndex
    ) throws(PlanError) {
        let candidates = document.operations.filter { name == nil || $0.name == name }
        guard let operation = candidates.first else {
            let known = document.operations.map { $0.name ?? "one without a name" }.joined(separator: ", ")
            throw PlanError(
                .notFound,
                name.flatMap { known.isEmpty ? nil : "The document has no operation \($0); it has: \(known)" }
                    ?? "The document has no operation")
        }
        guard candidates.count == 1 else {
            let known = candidates.compactMap(\.name).joined(separator: ", ")
            throw PlanError(.notFound, "The document has several operations, and one must be named: \(known)")
        }
        try self.init(.operation(operation), in: document, schema)
    }

    /// - Parameter name: Which fragment; may be nil where the document has only one.
    package convenience init(
        fragment name: String?, in document: Document, _ schema: SchemaIndex
    ) throws(PlanError) {
        let candidates = document.fragments.filter { name == nil || $0.name == name }
        guard candidates.count == 1, let fragment = candidates.first else {
            let known = document.fragments.map(\.name).joined(separator: ", ")
            let wanted = name ?? "that is its only one"
            throw PlanError(.notFound, "The document has no fragment \(wanted); it has: \(known)")
        }
        try self.init(.fragment(fragment), in: document, schema)
    }

    private init(_ subject: Subject, in document: Document, _ schema: SchemaIndex) throws(PlanError) {
        self.subject = subject
        self.schema = schema
        let needed: Document
        switch subject {
        case .operation(let operation):
            // What other operations of the document do wrong is not this one's matter.
            needed = Document(operations: [operation], fragments: document.reachable(from: operation.selections))
        case .fragment(let fragment):
            needed = Document(operations: [], fragments: document.reachable(from: fragment.selections) + [fragment])
        }
        self.document = needed
        conditionVariables = needed.conditionVariables.sorted()
        let problems = validate(needed, against: schema).filter { problem in
            // A fragment that is read by itself has no operation that defines its variables.
            if case .fragment = subject { problem.rule != .allVariableUsesDefined } else { true }
        }
        if let problem = problems.first {
            let others = problems.count > 1 ? " (and \(problems.count - 1) more)" : ""
            throw PlanError(.invalid, problem.message + others, location: problem.location)
        }
        if case .operation(let operation) = subject {
            let sent = needed.forSending(operation, schema)
            added = sent.added
            sentText = sent.document.printed()
        } else {
            added = nil
            sentText = ""
        }
        sentHash = hexadecimal(SHA256.hash(data: Array(sentText.utf8)))
        // About ten letters of text become a field of two hundred bytes, and as much again in each plan.
        documentSize = needed.printed().utf8.count * 16 + sentText.utf8.count
        // The other outcomes are compiled when they are asked for: what only one of them gets wrong, validation finds.
        let conditions = Dictionary(uniqueKeysWithValues: conditionVariables.map { ($0, true) })
        _ = try layout(for: conditions, exposesAdded: false)
    }

    /// About how much memory it takes, in bytes: the document as it was parsed, and the plans that were made of it.
    package var size: Int { documentSize + layouts.withLock { $0.size } }

    /// The strings that the program wrote into the operation and its fragments themselves.
    package var strings: [String] { document.strings }

    package var kind: OperationKind {
        if case .operation(let operation) = subject { operation.kind } else { .query }
    }

    package var name: String? {
        switch subject {
        case .operation(let operation): operation.name
        case .fragment(let fragment): fragment.name
        }
    }

    /// The operation with its variables, checked and with defaults filled in.
    ///
    /// - Parameter exposesAdded: Whether what identifies objects is part of the answer: see `Plan.compile`.
    package func bound(
        _ variables: [String: Value] = [:], exposesAdded: Bool = false
    ) throws(PlanError) -> BoundOperation {
        var coerced = variables
        if case .operation(let operation) = subject { coerced = try operation.coerce(variables, in: schema) }
        var conditions: [String: Bool] = [:]
        for name in conditionVariables {
            guard case .boolean(let value)? = coerced[name] else {
                throw PlanError(.variable, "The variable $\(name) decides about @include or @skip and needs a value")
            }
            conditions[name] = value
        }
        let layout = try layout(for: conditions, exposesAdded: exposesAdded)
        for limit in layout.plan.pageLimits { try limit.check(coerced) }
        return BoundOperation(
            layout: layout, binding: OperationBinding(layout.plan, variables: coerced, schema: schema))
    }

    private func layout(for conditions: [String: Bool], exposesAdded: Bool) throws(PlanError) -> PlanLayout {
        let key = LayoutKey(
            conditions: conditionVariables.map { conditions[$0] ?? false }, exposesAdded: exposesAdded)
        if let known = layouts.withLock({ $0.value(for: key) }) { return known }
        // What is written, and what is read to be changed and written back, has names that a person would write.
        let added = exposesAdded ? nil : added
        let plan =
            switch subject {
            case .operation(let operation):
                try Plan.compile(
                    operation, of: document, schema, conditions: conditions, added: added, exposesAdded: exposesAdded)
            case .fragment(let fragment):
                try Plan.compile(fragment, of: document, schema, conditions: conditions, exposesAdded: exposesAdded)
            }
        let layout = PlanLayout(plan)
        layouts.withLock { _ = $0.keep(layout, for: key, size: layout.size) }
        return layout
    }
}
