import LarderGraphQL

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
        var records = SharedMap<RecordID, Void>()
        /// Keys and names that had no number.
        var absentKeys = SharedMap<ExactText, Void>()
        var absentNames = SharedMap<ExactText, Void>()
    }

    let generation: Generation
    private(set) var basis: Basis
    private var isBuilt = false
    private var records = SharedMap<RecordID, Overlaid>()
    private var splitFields = SharedMap<RecordID, SharedMap<FieldID, Overlaid>>()
    private var keys = SharedMap<ExactText, RecordID>()
    private var keyTexts = SharedMap<RecordID, String>()
    private var fields = SharedMap<ExactText, FieldID>()
    private var fieldNames = SharedMap<FieldID, String>()
    /// Where the bytes are.
    private let memory: OverlayMemory
    /// Of large values, each its own, so that it goes when another takes the value's place.
    private var largeValues = SharedMap<RecordField, OverlayMemory>()
    /// Everything that is different from the snapshot, and perhaps some of it the same again.
    private(set) var touched = SharedMap<RecordField, Void>()
    /// By number: the keys of entities that came into being.
    private(set) var createdKeys = SharedMap<RecordID, String>()
    /// The layers that are in here, by their indices in the set, in the order in which they were laid; and whether the
    /// snapshot knew of their mutations, so that nothing of them is.
    private(set) var order = SharedList<(layer: Int, isApplied: Bool)>()
    /// Those whose mutations the snapshot knew of.
    private(set) var appliedLayers = OverlaidLayers()
    /// How many of `order` were in the overlay that it goes on from.
    let earlierCount: Int
    private(set) var laid = OverlaidLayers()
    /// Whether no layer that is in here looked into records that it does not say it touches.
    private(set) var isWhole = true
    /// By the layers' indices.
    var failures: [Int: LayerFailure] = [:]
    /// The lists that layers have edited since they were encoded.
    var openLists = OpenLists()

    init(_ generation: Generation, _ basis: Basis) {
        self.generation = generation
        self.basis = basis
        memory = OverlayMemory()
        earlierCount = 0
    }

    /// What another overlay is, for more layers to be laid over it. The other stays as it is.
    ///
    /// - Parameter state: The counters of the snapshot now, for which the other is right too.
    /// - Complexity: O(1), but for a bit of each layer.
    init(goingOnFrom other: Overlay, _ state: GenerationState) {
        generation = other.generation
        basis = other.basis
        basis.state = state
        records = other.records
        splitFields = other.splitFields
        keys = other.keys
        keyTexts = other.keyTexts
        fields = other.fields
        fieldNames = other.fieldNames
        memory = other.memory
        largeValues = other.largeValues
        touched = other.touched
        createdKeys = other.createdKeys
        order = other.order
        appliedLayers = other.appliedLayers
        earlierCount = other.order.count
        laid = other.laid
        isWhole = other.isWhole
        failures = other.failures
    }

    // MARK: Looking

    @inline(__always)
    func record(_ id: RecordID) -> Overlaid? {
        if !isBuilt { willRead(id) }
        return records[id]
    }

    private func willRead(_ id: RecordID) {
        closeLists(of: id)
        if !records.contains(id) { basis.records.insert(id) }
    }

    func splitField(_ key: SplitFieldKey) -> Overlaid? {
        if !isBuilt { closeLists(of: key.record) }
        return splitFields[key.record]?[key.field]
    }

    /// The fields of a split record, in ascending order.
    func splitFields(of record: RecordID) -> [(field: FieldID, value: Overlaid)] {
        if !isBuilt { closeLists(of: record) }
        var found: [(field: FieldID, value: Overlaid)] = []
        splitFields[record]?.forEach { found.append(($0, $1)) }
        return found.sorted { $0.field < $1.field }
    }

    func record(ofKey key: UnsafeRawBufferPointer) -> RecordID? {
        unsafe keys.isEmpty ? nil : keys[key]
    }

    /// Takes note of a key that the snapshot did not have.
    func missed(_ key: UnsafeRawBufferPointer) {
        if !isBuilt { unsafe basis.absentKeys.insert(ExactText(String(decoding: key, as: UTF8.self))) }
    }

    /// The key of an entity that exists in here alone.
    func key(of record: RecordID) -> String? { keyTexts[record] }

    /// Whether there are names that the snapshot does not have.
    var hasNames: Bool { !fields.isEmpty }

    func field(of name: ExactText) -> FieldID? { fields.isEmpty ? nil : fields[name] }
    func name(of field: FieldID) -> String? { fieldNames[field] }

    /// Takes note of a name that the snapshot did not have.
    func missed(_ name: ExactText) {
        if !isBuilt { basis.absentNames.insert(name) }
    }

    // MARK: Building

    /// Takes in what was worked out over what is in here so far.
    func lay(_ changes: RecordChanges) {
        for (id, range) in changes.records {
            records.set(id, kept(changes, range, RecordField(record: id, field: RecordField.any)))
        }
        for (key, range) in changes.splitFields {
            set(kept(changes, range, RecordField(record: key.record, field: key.field)), at: key)
        }
        for key in changes.removedSplitFields { set(.removed, at: key) }
        for id in changes.removedRecords { records.set(id, .removed) }
        for (index, id) in changes.newKeys {
            let key = changes.changes.createdKeys[index]
            keys.set(ExactText(key), id)
            keyTexts.set(id, key)
            createdKeys.set(id, key)
        }
        for (index, id) in changes.comingBack { createdKeys.set(id, changes.changes.createdKeys[index]) }
        for (name, field) in changes.newNames {
            fields.set(name, field)
            fieldNames.set(field, name.text)
        }
        // Set again where it is there already: by that it is known to have been touched since.
        for field in changes.changes.fields { touched.set(field, ()) }
        openLists.forgetOrders(of: changes)
    }

    private func kept(_ changes: RecordChanges, _ range: Range<Int>, _ place: RecordField) -> Overlaid {
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: changes.encoder.bytes[range])
        guard bytes.count > Self.largeSize else { return unsafe Overlaid(memory.keep(bytes)) }
        let own = OverlayMemory()
        largeValues.set(place, own)
        return unsafe Overlaid(own.keep(bytes))
    }

    /// Values of more bytes do not stay when others take their places.
    private static let largeSize = 2048

    private func set(_ value: Overlaid, at key: SplitFieldKey) {
        var own = splitFields[key.record] ?? SharedMap()
        own.set(key.field, value)
        splitFields.set(key.record, own)
    }

    /// Takes note of a layer, which is laid next unless its mutation is known.
    func begin(_ layer: Int, _ touched: TouchedKeys?, isApplied: Bool) {
        order.append((layer, isApplied))
        laid.insert(layer)
        if isApplied { appliedLayers.insert(layer) }
        isWhole = isWhole && touched?.isWhole ?? false
    }

    /// Ends the building: from now on it is only looked into.
    func finish() {
        isBuilt = true
        // What was set one by one has room for more.
        openLists = OpenLists()
    }
}

/// What an overlay has under a number: bytes, or that there is nothing any more.
///
/// Safe: the bytes lie in the `OverlayMemory` that the overlay keeps.
@safe struct Overlaid {
    /// Empty where what is stored is removed: nothing that is stored is empty.
    private let content: UnsafeRawBufferPointer

    static var removed: Overlaid { unsafe Overlaid(UnsafeRawBufferPointer(start: nil, count: 0)) }

    init(_ content: UnsafeRawBufferPointer) { unsafe self.content = unsafe content }

    @inline(__always)
    var bytes: UnsafeRawBufferPointer? { unsafe content.isEmpty ? nil : content }

    func isSame(as other: Overlaid) -> Bool { unsafe hasSameBytes(content, other.content) }
}
