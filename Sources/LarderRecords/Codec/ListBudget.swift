/// How many words the lists of one value may still hold.
///
/// Each word takes four of the value's bytes. Lists that lie in each other's bytes would otherwise multiply: a few
/// kilobytes of them read as more than any memory holds.
struct ListBudget {
    private var words: Int

    init(_ payload: PayloadView) { words = payload.bytes.count / 4 }

    mutating func take(_ list: ListView) throws(DamagedRecord) {
        words -= list.count
        guard words >= 0 else { throw DamagedRecord("its lists overlap") }
    }
}
