internal import LarderGraphQL

/// What optimistic layers would have written if they were committed one after the other on one snapshot.
///
/// It lives in memory alone. What exists in it and nowhere else has numbers of `OverlayNumbers`, which reach neither
/// the file nor anything that is shared with reads without it.
///
/// Unchecked: changed only while it is built, by the one thread that builds it and before any other has it.
final class Overlay: @unchecked Sendable {
    /// What was read of the snapshot while the overlay was built: as long as that is the same, so is the overlay.
    struct Basis {
        /// The snapshot's counters.
        var state: GenerationState
        var records: Set<RecordID> = []
        /// Keys and names that had no number.
        var absentKeys: Set<ExactText> = []
        var absentNames: Set<ExactText> = []
    }

    let generation: Generation
    private(set) var basis: Basis
    private var isBuilt = false
    private var records = OverlayRecords()
    private var splitFields: [RecordID: [FieldID: Overlaid]] = [:]
    private var keys: [ExactText: RecordID] = [:]
    /// The checksums of `keys`: nearly all that are looked for are not there, which is soon said with these.
    private var keySums: Set<UInt32> = []
    private var keyTexts: [RecordID: String] = [:]
    private var fields: [ExactText: FieldID] = [:]
    private var fieldNames: [FieldID: String] = [:]
    /// Of this overlay, after those of the ones that it goes on from.
    private let memories: [OverlayMemory]
    /// Everything that is different from the snapshot, and perhaps some of it the same again.
    private(set) var touched: Set<RecordField> = []
    /// By number: the keys of entities that came into being.
    private(set) var createdKeys: [RecordID: String] = [:]
    /// The layers that are in here, by their indices in the set, in the order in which they were laid; and whether the
    /// snapshot knew of their mutations, so that nothing of them is.
    private(set) var order: [(layer: Int, isApplied: Bool)] = []
    private(set) var laid = LaidLayers()
    /// By the layers' indices.
    var failures: [Int: LayerFailure] = [:]

    init(_ generation: Generation, _ basis: Basis) {
        self.generation = generation
        self.basis = basis
        memories = [OverlayMemory()]
    }

    /// What another overlay is, for more layers to be laid over it. The other stays as it is.
    ///
    /// - Parameter state: The counters of the snapshot now, for which the other is right too.
    init(goingOnFrom other: Overlay, _ state: GenerationState) {
        generation = other.generation
        basis = other.basis
        basis.state = state
        records = other.records
        splitFields = other.splitFields
        keys = other.keys
        keySums = other.keySums
        keyTexts = other.keyTexts
        fields = other.fields
        fieldNames = other.fieldNames
        memories = other.memories + [OverlayMemory()]
        touched = other.touched
        createdKeys = other.createdKeys
        order = other.order
        laid = other.laid
        failures = other.failures
    }

    // MARK: Looking

    @inline(__always)
    func record(_ id: RecordID) -> Overlaid? {
        if let found = records[id] { return found }
        if !isBuilt { basis.records.insert(id) }
        return nil
    }

    func splitField(_ key: SplitFieldKey) -> Overlaid? { splitFields[key.record]?[key.field] }

    /// The fields of a split record, in ascending order.
    func splitFields(of record: RecordID) -> [(field: FieldID, value: Overlaid)] {
        (splitFields[record] ?? [:]).map { ($0.key, $0.value) }.sorted { $0.field < $1.field }
    }

    func record(ofKey key: UnsafeRawBufferPointer) -> RecordID? {
        guard !keys.isEmpty, keySums.contains(checksum(key, seed: 0)) else { return nil }
        return keys[ExactText(String(decoding: key, as: UTF8.self))]
    }

    /// Takes note of a key that the snapshot did not have.
    func missed(_ key: UnsafeRawBufferPointer) {
        if !isBuilt { basis.absentKeys.insert(ExactText(String(decoding: key, as: UTF8.self))) }
    }

    /// The key of an entity that exists in here alone.
    func key(of record: RecordID) -> String? { keyTexts[record] }

    /// Whether there are names that the snapshot does not have.
    var hasNames: Bool { !fields.isEmpty }

    func field(of name: ExactText) -> FieldID? { fields[name] }
    func name(of field: FieldID) -> String? { fieldNames[field] }

    /// Takes note of a name that the snapshot did not have.
    func missed(_ name: ExactText) {
        if !isBuilt { basis.absentNames.insert(name) }
    }

    // MARK: Building

    /// Takes in what was worked out over what is in here so far.
    func lay(_ changes: RecordChanges) {
        let bytes = memories[memories.count - 1].keep(changes.encoder.bytes)
        func kept(_ range: Range<Int>) -> Overlaid { Overlaid(UnsafeRawBufferPointer(rebasing: bytes[range])) }
        for (id, range) in changes.records { records.set(id, kept(range)) }
        for (key, range) in changes.splitFields { splitFields[key.record, default: [:]][key.field] = kept(range) }
        for key in changes.removedSplitFields { splitFields[key.record, default: [:]][key.field] = .removed }
        for id in changes.removedRecords { records.set(id, .removed) }
        for (index, id) in changes.newKeys {
            let key = changes.changes.createdKeys[index]
            keys[ExactText(key)] = id
            keySums.insert(changes.changes.createdKeys.withKey(index) { checksum($0, seed: 0) })
            keyTexts[id] = key
            createdKeys[id] = key
        }
        for (index, id) in changes.comingBack { createdKeys[id] = changes.changes.createdKeys[index] }
        for (name, field) in changes.newNames {
            fields[name] = field
            fieldNames[field] = name.text
        }
        touched.formUnion(changes.changes.fields)
    }

    /// Takes note of a layer, which is laid next unless its mutation is known.
    func begin(_ layer: Int, isApplied: Bool) {
        order.append((layer, isApplied))
        laid.insert(layer)
    }

    /// Ends the building: from now on it is only looked into.
    func finish() { isBuilt = true }
}
