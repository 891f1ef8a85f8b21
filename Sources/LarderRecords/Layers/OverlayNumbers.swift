import LarderFiles
import LarderGraphQL

/// Gives numbers to what exists in optimistic layers alone, from ranges that no store comes to.
///
/// As long as there are layers, the same key or name has the same number in every overlay; none is used for anything
/// else afterwards.
final class OverlayNumbers: Sendable {
    static let firstRecord: RecordID = 1 << 62
    static let firstField: FieldID = 0xF000_0000

    private struct State {
        var nextRecord = OverlayNumbers.firstRecord
        var nextField = OverlayNumbers.firstField
        var records: [ExactText: RecordID] = [:]
        var fields: [ExactText: FieldID] = [:]
    }

    private let state = Locked(State())

    /// A number for a record without a key.
    func newRecord() -> RecordID {
        state.withLock { state in
            defer { state.nextRecord += 1 }
            return state.nextRecord
        }
    }

    /// The number of a key, which is given one if it has none yet.
    ///
    /// Safe: the key is copied before the call returns for which it is lent.
    func record(of key: UnsafeRawBufferPointer) -> RecordID {
        let key = unsafe ExactText(String(decoding: key, as: UTF8.self))
        return state.withLock { state in
            if let known = state.records[key] { return known }
            state.records[key] = state.nextRecord
            defer { state.nextRecord += 1 }
            return state.nextRecord
        }
    }

    func field(_ name: ExactText) throws(RecordError) -> FieldID {
        try state.withLock { (state) throws(RecordError) in
            if let known = state.fields[name] { return known }
            guard state.nextField < FieldID.max - 1 else {
                throw RecordError(.full, "The optimistic layers have no numbers left for fields; open the store again")
            }
            state.fields[name] = state.nextField
            defer { state.nextField += 1 }
            return state.nextField
        }
    }

    /// Forgets what has which number, once there are no layers.
    func forget() {
        state.withLock { state in
            state.records = [:]
            state.fields = [:]
        }
    }
}
