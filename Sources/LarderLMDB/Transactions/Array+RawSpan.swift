extension [UInt8] {
    /// The array's bytes, as `span.bytes` gives them.
    ///
    /// `Array.span` exists from macOS 26 and iOS 26 on only. An array of integers is never bridged, so that its storage
    /// is one block which lives, and does not move, for as long as the array is borrowed.
    @inlinable package var rawSpan: RawSpan {
        @_lifetime(borrow self) get {
            let bytes = unsafe withUnsafeBytes { bytes in unsafe bytes }
            return unsafe _overrideLifetime(RawSpan(_unsafeBytes: bytes), borrowing: self)
        }
    }
}
