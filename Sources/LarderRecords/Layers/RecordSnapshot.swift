import LarderLMDB

/// What records are read from: a snapshot of a generation, and what optimistic layers lay over it.
protocol RecordSnapshot: Transaction, ~Copyable {
    /// Nil for what is stored alone. Where it is known at compile time to be nil, looking into it costs nothing.
    var overlay: Overlay? { get }
    /// Where it is noted what would have to be laid over it besides; nil where all layers are, or none is to be.
    var demand: LayerDemand? { get }
}

extension ReadTransaction: RecordSnapshot {
    @inline(__always)
    var overlay: Overlay? { nil }
    @inline(__always)
    var demand: LayerDemand? { nil }
}

extension WriteTransaction: RecordSnapshot {
    /// Layers are never written.
    @inline(__always)
    var overlay: Overlay? { nil }
    @inline(__always)
    var demand: LayerDemand? { nil }
}

/// A snapshot with the layers that are over it. Its tables are the snapshot's alone: a reader of records, keys or
/// names looks into the overlay first.
struct LayeredSnapshot: ~Copyable, RecordSnapshot {
    private let base: ReadTransaction
    var layers: Overlay
    var demand: LayerDemand?

    init(_ base: consuming ReadTransaction, under layers: Overlay, _ demand: LayerDemand?) {
        self.base = base
        self.layers = layers
        self.demand = demand
    }

    @inline(__always)
    var overlay: Overlay? { layers }

    var id: UInt64 { base.id }

    @_lifetime(borrow self)
    borrowing func get(_ key: UInt64, in table: Table) throws(LMDBError) -> RawSpan? { try base.get(key, in: table) }

    @_lifetime(borrow self)
    borrowing func get(_ key: RawSpan, in table: Table) throws(LMDBError) -> RawSpan? { try base.get(key, in: table) }

    @_lifetime(borrow self)
    borrowing func cursor(in table: Table) throws(LMDBError) -> Cursor { try base.cursor(in: table) }

    borrowing func entryCount(of table: Table) throws(LMDBError) -> Int { try base.entryCount(of: table) }
}
