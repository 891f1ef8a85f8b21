/// Notes which layers would have to be laid for what is being read, and are not: what was read without them is of no
/// use then.
///
/// For the one thread that reads.
///
/// Safe: a key or a record is the caller's for the length of a call, which keeps nothing of it.
final class LayerDemand {
    private let index: LayerIndex
    private let laid: OverlaidLayers
    private var unmet = UnmetDemand()

    init(_ index: LayerIndex, laid: OverlaidLayers) {
        self.index = index
        self.laid = laid
    }

    /// Nil if nothing more is needed.
    var unmetDemand: UnmetDemand? { unmet.layers.isEmpty && !unmet.isEverything ? nil : unmet }

    /// A record is looked for by its key.
    @inline(__always)
    func note(key: UnsafeRawBufferPointer) {
        if let layer = unsafe index.last(touching: TouchedKeys.number(of: key)), !laid.contains(layer) {
            unmet.layers.append(layer)
        }
    }

    /// A record was come to by its number: its own bytes say which key it has.
    ///
    /// - Parameters:
    ///   - record: Nil where there is none.
    ///   - isInOverlay: Whether layers say that there is none.
    func note(met record: UnsafeRawBufferPointer?, isInOverlay: Bool) throws(DamagedRecord) {
        guard let record = unsafe record else {
            // Any layer may bring back what was evicted; nothing is left to tell which.
            if !isInOverlay { unmet.isEverything = true }
            return
        }
        // Parts have no key: their owner was looked at before.
        let key = unsafe try RecordView(record).key
        if unsafe !key.isEmpty { unsafe note(key: key) }
    }
}

/// What has to be laid before it can be read.
struct UnmetDemand {
    /// Indices in the set of layers; the same may be in it several times.
    var layers: [Int] = []
    var isEverything = false

    static let everything = UnmetDemand(isEverything: true)
}
