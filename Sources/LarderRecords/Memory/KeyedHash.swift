/// A hash of 64 bits for what is compared often and is too large to be kept.
///
/// Numbers are mixed as wyhash does it: the two halves of a full product are folded. Each process draws a key of its own,
/// so that a server cannot work out beforehand which two responses have the same hash.
///
/// Safe: each load lies within the bytes that the caller lends.
struct KeyedHash {
    static let ofProcess = KeyedHash(first: .random(in: .min ... .max), second: .random(in: .min ... .max))

    let first: UInt64
    let second: UInt64

    @inline(__always)
    func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = (left ^ first).multipliedFullWidth(by: right ^ second)
        return product.high ^ product.low
    }

    func hash(_ text: String) -> UInt64 {
        var text = text
        return text.withUTF8 { unsafe hash(UnsafeRawBufferPointer($0)) }
    }

    func hash(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count
        @inline(__always)
        func load(_ offset: Int) -> UInt64 { unsafe bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        var hash = UInt64(truncatingIfNeeded: count)
        guard count >= 16 else {
            // Of a text of eight bytes or more the middle is taken twice.
            if count >= 8 { return mix(hash ^ load(0), load(count - 8)) }
            var number: UInt64 = 0
            for place in bytes.indices { unsafe number = number << 8 | UInt64(bytes[place]) }
            return mix(hash, number)
        }
        var offset = 0
        if count > 64 {
            // Two at a time do not wait for each other.
            // Not with the first key, which `mix` would take out again.
            var other = hash &+ second
            while offset + 32 < count {
                hash = mix(hash ^ load(offset), load(offset + 8))
                other = mix(other ^ load(offset + 16), load(offset + 24))
                offset += 32
            }
            hash = mix(hash, other)
        }
        while offset + 16 < count {
            hash = mix(hash ^ load(offset), load(offset + 8))
            offset += 16
        }
        return mix(hash ^ load(count - 16), load(count - 8))
    }
}
