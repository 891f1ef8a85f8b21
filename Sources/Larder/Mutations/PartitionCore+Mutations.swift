import Foundation
import LarderGraphQL
import LarderOperations
import LarderRecords

extension PartitionCore {
    /// What a stored mutation says, as it stands now.
    static func operation(of mutation: Mutation) throws(LarderError) -> GraphQLOperation {
        try operation(mutation.content, of: mutation.id)
    }

    static func operation(_ content: MutationContent, of mutation: UUID) throws(LarderError) -> GraphQLOperation {
        let variables: Value
        do { variables = try Value(json: content.variables) } catch {
            throw LarderError(.variables, "The variables of mutation \(mutation) are no JSON", cause: error)
        }
        guard case .object(let members) = variables else {
            throw LarderError(.variables, "The variables of mutation \(mutation) are no object")
        }
        return GraphQLOperation(content.document, name: content.operationName, variables: members)
    }

    /// What the cache is to store of an answer, and the data and the errors of the answer as JSON where they are to be
    /// kept; nil where the mutation is known to have taken effect, and the answer is not known.
    func prepared(
        _ noted: NotedAnswer
    ) throws(LarderError) -> (answer: MutationAnswer, result: [UInt8]?, errors: [UInt8]?)? {
        let mutation = noted.mutation
        guard let body = mutation.answer, !body.isEmpty, let key = AppliedKey(mutation.idempotencyKey) else {
            return nil
        }
        let bound: BoundOperation
        if let known = noted.bound {
            bound = known
        } else {
            bound = try operations.boundOnce(Self.operation(of: mutation))
        }
        var edits = try [ListChange](mutation).map(\.edit)
        let parsed: ParsedResponse
        let data: [UInt8]
        do throws(RecordError) {
            if let read = noted.parsed, read.layout === bound.layout {
                parsed = read
            } else {
                parsed = try ParsedResponse.parse(body, along: bound.layout)
            }
            data = try parsed.assembled().json
        } catch { throw LarderError.parking(error) }
        if let name = mutation.content.updater {
            do throws(LarderError) {
                edits += try operations.edits(by: name, of: Self.operation(of: mutation), parsed)
            } catch {
                // The answer is stored all the same; the lists are fetched when they are asked for.
                logger.warning(
                    "what a mutation does to lists cannot be worked out",
                    metadata: [
                        "mutation": "\(mutation.id)", "error": "\(error)",
                    ])
            }
        }
        let answer = MutationAnswer(parsed, of: bound, key: key, edits: edits)
        return (answer, data.count <= Self.resultLimit ? data : nil, parsed.errorList(upTo: Self.resultLimit))
    }

    /// The variables of a mutation with the versions that the cache has of the objects which it changes, where its input
    /// objects have room for them and do not say them; nil where that is nowhere.
    func withVersions(
        _ variables: [String: Value], _ bound: BoundOperation
    ) throws(LarderError) -> [String: Value]? {
        let inputs = VersionedInput.all(bound.layout.plan, variables, operations.schema)
        var filled: [String: Value]?
        for input in inputs {
            let version: Int64?
            do { version = try cache.version(of: input.key) } catch { throw LarderError.parking(error) }
            guard let version, case .object(var members)? = variables[input.variable] else { continue }
            members[VersionField.version] = .int(version)
            filled = filled ?? variables
            filled?[input.variable] = .object(members)
        }
        return filled
    }

    /// The cache keys of the objects that the arguments of queued mutations name, whether they show anything or not.
    func namedByQueue() throws(LarderError) -> [String] {
        guard let database = try operationsStore.database(making: false) else { return [] }
        let queued: [Mutation]
        do { queued = try database.mutations.list(MutationFilter(partition: name)) } catch { throw LarderError(error) }
        return queued.flatMap { mutation -> [String] in
            // What does not fit the schema of today names nothing in it.
            guard let operation = try? withRealIDs(Self.operation(of: mutation)),
                let bound = try? operations.boundOnce(operation)
            else { return [] }
            return bound.layout.plan.namedObjects(bound.binding.variables, operations.schema)
        }
    }

    /// Fetches for this process's subscriptions what they may have missed, since deltas and events do not tell of it.
    func noteMissed() async throws(RecordError) {
        try await cache.forgetPositions()
        await subscriptions.noteMissed()
    }

    /// Stores what the server has of the objects for which it refused a mutation: the resolver's next attempt begins
    /// with their versions.
    func storeConflicts(_ details: [UInt8]?, of mutation: Mutation) async {
        for error in GraphQLError.list(details) where error.isConflict {
            guard let item = error.data, case .object = item, case .field(let name)? = error.path?.components.first
            else { continue }
            do {
                let bound = try operations.boundOnce(Self.operation(of: mutation))
                // Of a mutation's root nothing is stored.
                let data = Dictionary(bound.layout.rootKeys.map { ($0, $0 == name ? item : .null) }) { $1 }
                let parsed = try ParsedResponse.parse(data: Value.object(data).json, along: bound.layout)
                _ = try await cache.write(parsed, of: bound)
            } catch {
                // The server's object is fetched when it is asked for.
                logger.debug("the object of a conflict is not stored", metadata: ["error": "\(error)"])
            }
        }
    }

    /// Notes that there will be no answer of a mutation in the cache, though it took effect.
    func noteUnstored(_ key: String) async throws(LarderError) {
        guard let key = AppliedKey(key) else { return }
        do { try await cache.noteRejected(key) } catch { throw LarderError.parking(error) }
    }

    /// Forgets the outcomes of all but the last mutations, and the keys of mutations that were settled long ago, in
    /// whatever process.
    func prune(_ queue: MutationQueue) async throws(LarderError) {
        do {
            try await queue.prune(keeping: Outcome.kept, in: name)
            let limit = Int64((now().timeIntervalSince1970 - Self.appliedLifetime) * 1000)
            let old = try cache.applied().filter { $0.time < limit }
            guard !old.isEmpty else { return }
            let unsettled = Set(try queue.list(MutationFilter(partition: name)).map(\.idempotencyKey))
            // A layer whose key is forgotten while it is there would be seen again.
            try layers.reload(queue)
            _ = try await cache.forgetApplied(
                old.map(\.key).filter { !unsettled.contains($0) }.compactMap(AppliedKey.init))
        } catch { throw LarderError(translating: error) }
    }

    /// For so long another process may still show a mutation that was applied as not applied.
    private static let appliedLifetime: TimeInterval = 86_400

    private static let resultLimit = 64 << 10
}
