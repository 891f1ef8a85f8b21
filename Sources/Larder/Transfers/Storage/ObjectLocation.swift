/// Where an object is: a key in a bucket.
public struct ObjectLocation: Sendable, Hashable, Codable {
    /// The bucket's name.
    public var bucket: String
    /// The object's key: 1 to 1,024 bytes of UTF-8, any characters. No `/` leads it unless it is part of the key.
    public var key: String
    /// The cloud's region that the bucket is in; nil: the transport's.
    public var region: String?
    /// Which of the partition's storages, by the name that its runner gives to it; nil: the one that has no name.
    public var storage: String?

    /// A place; it need not hold anything yet.
    public init(bucket: String, key: String, region: String? = nil, storage: String? = nil) {
        self.bucket = bucket
        self.key = key
        self.region = region
        self.storage = storage
    }
}

extension ObjectLocation {
    /// Whether both are the same key, wherever the bucket is said to be.
    func isSamePlace(as other: ObjectLocation) -> Bool {
        storage == other.storage && bucket == other.bucket && key == other.key
    }
}

extension ObjectLocation: CustomStringConvertible {
    /// `bucket/key`, with `storage:` before it where that has a name.
    public var description: String { "\(storage.map { "\($0):" } ?? "")\(bucket)/\(key)" }
}
