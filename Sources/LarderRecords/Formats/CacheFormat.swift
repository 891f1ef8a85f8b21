/// In which format a record cache is, as far as that can be told without opening it for use.
package struct CacheFormat: Sendable, Hashable {
    package enum State: Sendable, Hashable {
        /// This library's own.
        case current
        /// An earlier one, which has to be migrated before the cache can be used.
        case older(UInt32)
        /// A later one: only a newer program can use it.
        case newer(UInt32)
        /// It cannot be told; the text says why.
        case damaged(String)
        /// There is no cache, which is as good as an empty one.
        case absent
    }

    /// The format that this library writes.
    package static let current = GenerationState.format

    /// The number of the generation that is current; the last there was where there is none.
    package var generation: Int
    package var state: State
    /// Of the current generation's data file.
    package var byteCount = 0
}
