import Crypto
import Foundation
import LarderFiles

/// One of the program's keys, with which the keys of partitions are sealed: 32 bytes from a random number generator. It
/// never prints them.
public struct MasterKey: Sendable, Hashable {
    /// How many bytes a key has.
    package static let byteCount = 32

    /// Names the key and tells nothing of it: the beginning of a SHA-256 over its bytes, in hexadecimal.
    public let id: String
    let key: SymmetricKey

    /// A new key.
    public init() { self.init(SymmetricKey(size: .bits256)) }

    /// A key that was kept.
    ///
    /// - Throws: `.invalid` unless it is of 32 bytes.
    public init(bytes: [UInt8]) throws(KeyError) {
        guard bytes.count == Self.byteCount else {
            throw KeyError(.invalid, "A key is of \(Self.byteCount) bytes, and not of \(bytes.count)")
        }
        self.init(SymmetricKey(data: bytes))
    }

    private init(_ key: SymmetricKey) {
        self.key = key
        var hash = SHA256()
        hash.update(data: Data("larder key id 1\n".utf8))
        key.withUnsafeBytes { hash.update(bufferPointer: $0) }
        id = hexadecimal(hash.finalize().prefix(8))
    }

    /// The key itself, for the provider that keeps it.
    public var bytes: [UInt8] { key.withUnsafeBytes { Array($0) } }

    /// The same keys have the same id.
    public static func == (one: MasterKey, other: MasterKey) -> Bool { one.id == other.id }
    /// Feeds the id.
    public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

extension MasterKey: Discreet {
    /// The id.
    public var description: String { "key \(id)" }
}

/// What a key provider has: the key that is in use, and older ones with which something may still be sealed.
public struct MasterKeys: Sendable, Hashable {
    /// Seals whatever is sealed from now on.
    public var current: MasterKey
    /// The latest first.
    public var previous: [MasterKey]

    /// The key in use, and older ones.
    public init(current: MasterKey, previous: [MasterKey] = []) {
        self.current = current
        self.previous = previous
    }

    /// The key of an id, if there is one.
    package subscript(id: String) -> MasterKey? { all.first { $0.id == id } }

    var all: [MasterKey] { [current] + previous }
    var ids: [String] { all.map(\.id) }
}
