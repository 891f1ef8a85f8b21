import LarderGraphQL
import LarderRecords

/// Takes over a cache: first it is looked through for which record is which object, then what they say is stored.
struct CacheImport {
    let cache: SourceCache
    let schema: SchemaIndex
    let style: KeyStyle
    let writer: StoreWriter

    /// Drafts are stored together, since writes that wait together share a commit.
    private static let batchSize = 64

    func run(_ report: inout ImportReport) async throws(ImportError) {
        var index = SourceIndex(schema: schema)
        try cache.forEachRow { row in
            report.records += 1
            switch row {
            case .unreadable(let name): report.omit(.record, .unreadable, name)
            case .tooLarge(let key): report.omit(.record, .tooLarge, key)
            case .record(let record):
                if let reason = index.note(record) { report.omit(.record, reason, record.described) }
            }
        }
        var converter = SourceConverter(
            schema: schema, style: style, index: index, cache: cache, isDeleted: { [writer] in writer.isDeleted($0) })
        // The root first: a field policy answers its fields from the objects as soon as they are there.
        if index.identities[ExactText(CacheKey.queryRoot.text)] == .queryRoot {
            let fields = try fields(of: [CacheKey.queryRoot.text], as: schema.queryType, &converter, &report)
            let draft = ObjectDraft(key: nil, type: schema.queryType, keyFields: [], fields: fields)
            let outcome = try await writer.store(draft)
            report.rootFields.taken += outcome.taken
            report.rootFields.present += outcome.present
            note(outcome, of: CacheKey.queryRoot.text, &report)
        }
        try await take(index.objects, &converter, &report)
        // What they refer to may be objects whose type only that tells, and so on.
        var taken: Set<ExactText> = []
        while true {
            let rest = converter.inferred.filter { !taken.contains($0.key) }
            if rest.isEmpty { break }
            taken.formUnion(rest.keys)
            try await take(rest.sorted { $0.key.text < $1.key.text }.map(\.value), &converter, &report)
        }
        report.parts = converter.used.count
        for (key, identity) in index.identities.sorted(by: { $0.key.text < $1.key.text }) {
            guard case .part(let type) = identity, !converter.used.contains(key), !taken.contains(key) else {
                continue
            }
            report.omit(.record, type == nil ? .noType : .unreferenced, key.text)
        }
    }

    private func take(
        _ all: [SourceIndex.Object], _ converter: inout SourceConverter, _ report: inout ImportReport
    ) async throws(ImportError) {
        for start in stride(from: 0, to: all.count, by: Self.batchSize) {
            let objects = all[start..<min(start + Self.batchSize, all.count)]
            var drafts: [ObjectDraft] = []
            for object in objects {
                let keyFields = converter.keyFields(object.keyValues, as: object.type)
                let fields = try fields(of: object.sources, as: object.type, &converter, &report)
                drafts.append(
                    ObjectDraft(
                        key: object.key, type: object.type, keyFields: keyFields.values.sorted(),
                        fields: fields.filter { keyFields[$0.field.selection] == nil }))
            }
            for (draft, outcome) in zip(drafts, try await store(drafts)) {
                report.fields.taken += outcome.taken
                report.fields.present += outcome.present
                if outcome.isTaken {
                    report.objects.taken += 1
                } else if outcome.isDeleted {
                    report.omit(.record, .deletedHere, draft.key ?? "")
                } else {
                    report.objects.present += 1
                }
                note(outcome, of: draft.key ?? "", &report)
            }
        }
    }

    /// What the records that are one object say, without what they contradict each other in.
    private func fields(
        of sources: [String], as type: SchemaIndex.TypeID, _ converter: inout SourceConverter,
        _ report: inout ImportReport
    ) throws(ImportError) -> [TakenField] {
        var found: [ExactText: TakenField] = [:]
        var contradictory: Set<ExactText> = []
        for source in sources {
            guard let record = try cache.record(source) else { continue }
            for (key, value) in record.fields.sorted(by: { $0.key < $1.key }) where key != "__typename" {
                let result = try converter.field(key, value, of: type)
                for lost in converter.lost { report.omit(.field, lost.reason, lost.detail) }
                switch result {
                case .success(let taken):
                    let selection = taken.field.selection
                    if let other = found[selection], other != taken { contradictory.insert(selection) }
                    found[selection] = taken
                case .failure(let failure):
                    let detail = failure.detail.isEmpty ? "" : ": \(failure.detail)"
                    report.omit(.field, failure.reason, "\(source).\(key)\(detail)")
                }
            }
        }
        for selection in contradictory.sorted(by: { $0.text < $1.text }) {
            found[selection] = nil
            report.omit(.field, .contradictory, "\(selection.text) of \(sources.joined(separator: ", "))")
        }
        return found.values.sorted()
    }

    private func store(_ drafts: [ObjectDraft]) async throws(ImportError) -> [StoreWriter.Outcome] {
        let results = await withTaskGroup(of: (Int, Result<StoreWriter.Outcome, ImportError>).self) { [writer] group in
            for (index, draft) in drafts.enumerated() {
                group.addTask {
                    do throws(ImportError) { return (index, .success(try await writer.store(draft))) } catch {
                        return (index, .failure(error))
                    }
                }
            }
            var results: [Int: Result<StoreWriter.Outcome, ImportError>] = [:]
            for await (index, result) in group { results[index] = result }
            return results
        }
        var outcomes: [StoreWriter.Outcome] = []
        for index in drafts.indices {
            if let result = results[index] { outcomes.append(try result.get()) }
        }
        return outcomes
    }

    private func note(_ outcome: StoreWriter.Outcome, of key: String, _ report: inout ImportReport) {
        for (field, reason) in outcome.refused { report.omit(.field, .refused, "\(key).\(field): \(reason)") }
        for field in outcome.uneven { report.omit(.field, .unevenElements, "\(key).\(field)") }
    }
}

extension SourceRecord {
    /// As people find it.
    fileprivate var described: String { typename.map { "\(key) (\($0))" } ?? key }
}

extension TakenField: Comparable {
    static func < (left: TakenField, right: TakenField) -> Bool {
        left.field.selection.text < right.field.selection.text
    }
}
