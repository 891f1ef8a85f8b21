import Larder
import LarderFiles
import LarderGraphQL
import LarderRecords

/// Stores what the store does not know yet, and leaves alone what it knows: that is newer.
final class StoreWriter: Sendable {
    /// What became of a draft.
    struct Outcome: Sendable {
        var taken = 0
        var present = 0
        /// Whether anything was stored, be it only that the object exists.
        var isTaken = false
        var isDeleted = false
        /// What the store refused, and why.
        var refused: [(field: String, reason: String)] = []
        var uneven: [String] = []
    }

    private let cache: RecordCache?
    private let schema: SchemaIndex
    private let isDryRun: Bool
    /// Objects of one type mostly have the same fields.
    private let compiled = Locked(RecentlyUsed<ExactText, BoundOperation>(limit: 32 << 20))
    private let deleted = Locked(RecentlyUsed<ExactText, Bool>(limit: 16 << 20))
    /// How long a write may wait, for those before it above all.
    private static let timeout = Duration.seconds(60)

    /// - Parameter cache: Nil to know only what could be taken.
    init(_ cache: RecordCache?, _ schema: SchemaIndex, isDryRun: Bool) {
        self.cache = cache
        self.schema = schema
        self.isDryRun = isDryRun
    }

    /// Whether the store knows an object to be no more.
    func isDeleted(_ key: String) -> Bool {
        guard let cache, let colon = key.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        if let known = deleted.withLock({ $0.value(for: ExactText(key)) }) { return known }
        // What cannot be read will be told by the write.
        let operation = try? bound("fragment Known on \(key[..<colon]) { __typename }", isFragment: true)
        let answer = operation.flatMap { try? cache.read($0, from: .object(key: key), ignoringLayers: true) }
        deleted.withLock { known in
            _ = known.keep(answer?.isDeleted ?? false, for: ExactText(key), size: key.utf8.count + 96)
        }
        return answer?.isDeleted ?? false
    }

    /// - Throws: `.store` where the store fails; what it refuses for its content is in the outcome.
    func store(_ draft: ObjectDraft) async throws(ImportError) -> Outcome {
        var outcome = Outcome()
        for piece in draft.pieces { try await store(piece, &outcome) }
        return outcome
    }

    private func store(_ draft: ObjectDraft, _ outcome: inout Outcome) async throws(ImportError) {
        let document = DraftDocument(draft, schema)
        let knowledge: Knowledge
        do throws(Refusal) {
            let operation = try bound(document.text, isFragment: document.isFragment)
            let parsed = try parsed(document.answer, operation)
            knowledge = try await fill(document, operation, parsed, at: draft.root)
        } catch {
            switch error {
            case .failed(let failure): throw failure
            case .content(let reason):
                guard draft.fields.count > 1 else {
                    outcome.refused.append((draft.fields.first?.field.selection.text ?? "its identity", reason))
                    return
                }
                // One may be the fault of all.
                for field in draft.fields { try await store(draft.with([field]), &outcome) }
                return
            }
        }
        switch knowledge {
        case .deleted: outcome.isDeleted = true
        case .known: outcome.present += draft.fields.count
        case .unknown:
            outcome.taken += draft.fields.count
            outcome.isTaken = true
            outcome.uneven += document.uneven
        case .partlyKnown(let unknown):
            outcome.present += draft.fields.count - unknown.count
            try await store(draft.with(unknown.map { draft.fields[$0] }), &outcome)
        }
    }

    private enum Refusal: Error {
        case content(String)
        case failed(ImportError)
    }

    /// How much of a draft the store knows.
    private enum Knowledge: Sendable {
        case unknown, known, deleted
        /// The fields that are not known, by their places.
        case partlyKnown([Int])
    }

    private func fill(
        _ document: DraftDocument, _ operation: BoundOperation, _ parsed: ParsedResponse, at root: RecordCache.Root
    ) async throws(Refusal) -> Knowledge {
        guard let cache else { return .unknown }
        do throws(RecordError) {
            if isDryRun {
                let answer = try cache.read(operation, from: root, ignoringLayers: true)
                return Self.knowledge(answer, document.responseKeys)
            }
            let found = Locked(Knowledge.unknown)
            let keys = document.responseKeys
            _ = try await cache.update(operation, at: root, deadline: .now + Self.timeout) { answer in
                let knowledge = Self.knowledge(answer, keys)
                found.withLock { $0 = knowledge }
                if case .unknown = knowledge { return parsed }
                return nil
            }
            return found.withLock { $0 }
        } catch {
            guard RecordError.Code.ofContent.contains(error.code) else {
                throw .failed(ImportError(.store, "The store cannot take more: \(error)"))
            }
            throw .content(error.message)
        }
    }

    private static func knowledge(_ answer: CacheAnswer, _ keys: [String]) -> Knowledge {
        if answer.isDeleted { return .deleted }
        var missing: Set<String> = []
        for path in answer.response.missing {
            guard case .field(let key)? = path.components.first else { return .unknown }
            // What a field's value lacks further down is another's matter: the field is known.
            if path.components.count == 1 { missing.insert(key) }
        }
        let unknown = keys.indices.filter { missing.contains(keys[$0]) }
        if unknown.isEmpty { return .known }
        return unknown.count == keys.count ? .unknown : .partlyKnown(unknown)
    }

    private func parsed(_ answer: [UInt8], _ operation: BoundOperation) throws(Refusal) -> ParsedResponse {
        do { return try ParsedResponse.parse(data: answer, along: operation.layout) } catch {
            throw .content(error.path.map { "\(error.message), at \($0)" } ?? error.message)
        }
    }

    private func bound(_ text: String, isFragment: Bool) throws(Refusal) -> BoundOperation {
        if let known = compiled.withLock({ $0.value(for: ExactText(text)) }) { return known }
        let document: Document
        do { document = try Document(parsing: text) } catch { throw .content("\(error)") }
        let operation: BoundOperation
        let size: Int
        do throws(PlanError) {
            let compiled =
                isFragment
                ? try CompiledOperation(fragment: nil, in: document, schema)
                : try CompiledOperation(operation: nil, in: document, schema)
            operation = try compiled.bound()
            size = compiled.size + operation.size
        } catch { throw .content("\(error)") }
        compiled.withLock { known in
            _ = known.keep(operation, for: ExactText(text), size: text.utf8.count + size)
        }
        return operation
    }
}
