/// A key and its value where a cursor stands. Both end with the cursor's transaction.
package struct Entry: ~Escapable {
    package let key: RawSpan
    package let value: RawSpan

    @_lifetime(copy key)
    init(key: RawSpan, value: RawSpan) {
        self.key = key
        self.value = unsafe _overrideLifetime(value, copying: key)
    }

    /// The key of an entry in a table with integer keys; zero where the key has fewer than eight bytes.
    package var integerKey: UInt64 {
        key.byteCount >= 8 ? unsafe key.unsafeLoadUnaligned(as: UInt64.self) : 0
    }
}
