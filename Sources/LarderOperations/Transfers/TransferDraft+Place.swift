extension TransferDraft {
    /// A number by which the uploads of one bucket and key are found; others may have the same one. Stored: it must be
    /// made as it always was. Nil for a download.
    var place: Int64? {
        guard kind == .upload else { return nil }
        // FNV-1a, of 32 bits: as long as is worth storing where few have to be told from each other.
        var hash: UInt32 = 0x811C_9DC5
        func add(_ byte: UInt8) { hash = (hash ^ UInt32(byte)) &* 0x0100_0193 }
        for byte in bucket.utf8 { add(byte) }
        // In no text.
        add(0xFF)
        for byte in key.utf8 { add(byte) }
        return Int64(hash)
    }
}
