import LarderGraphQL

/// What a `SharedMap` finds values by.
protocol SharedMapKey: Equatable {
    /// The same for equal keys; spread over the upper bits.
    var spread: UInt64 { get }
}

/// A dictionary whose copies share what they have in common: a copy costs O(1), and a change to it O(log n), however
/// many entries there are.
///
/// A trie over the upper bits of the keys' hashes, four at each step, with a few entries in each leaf. Looking up
/// counts no references, so that threads that look into the same map do not meet.
///
/// Safe: the map keeps the root, and each node its children, as long as they can be looked up.
@safe struct SharedMap<Key: SharedMapKey, Value> {
    fileprivate typealias Node = SharedMapNode<Key, Value>

    private var root: Node?
    /// The root again, for looking up.
    private var top: Unmanaged<Node>?
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    @inline(__always)
    subscript(key: Key) -> Value? { value(spread: key.spread) { $0 == key } }

    /// The value of the key for which `isKey` is true.
    ///
    /// - Parameter spread: The key's.
    @inline(__always)
    func value(spread: UInt64, where isKey: (Key) -> Bool) -> Value? {
        guard var node = unsafe top else { return nil }
        var bits = spread
        while let children = unsafe node._withUnsafeGuaranteedRef({ unsafe $0.branches }) {
            guard let child = unsafe children[Int(truncatingIfNeeded: bits >> 60)] else { return nil }
            unsafe node = unsafe child
            bits <<= 4
        }
        return unsafe node._withUnsafeGuaranteedRef { node in
            for index in 0..<node.count where unsafe node.entries[index].spread == spread {
                if unsafe isKey(node.entries[index].key) { return unsafe node.entries[index].value }
            }
            return nil
        }
    }

    func contains(_ key: Key) -> Bool { self[key] != nil }

    mutating func set(_ key: Key, _ value: Value) {
        if root == nil {
            root = Node()
        } else if !isKnownUniquelyReferenced(&root) {
            root = root?.copy()
        }
        unsafe top = unsafe root.map { unsafe Unmanaged.passUnretained($0) }
        if root?.set(.init(spread: key.spread, key: key, value: value), depth: 0) == true { count += 1 }
    }

    func forEach(_ body: (Key, Value) throws -> Void) rethrows { try root?.forEach(body) }

    /// Calls `body` with each key of either map, apart from those whose place both have in common: their values are
    /// the same. Others may be the same as well, and some keys come twice.
    ///
    /// - Complexity: O(d log n) in the keys that were set in one of them since they were copies.
    func forEachUnshared(with other: Self, _ body: (Key) -> Void) { Node.forEachUnshared(root, other.root, body) }
}

extension SharedMap where Value == Void {
    /// Adds a key, unless it is in it.
    mutating func insert(_ key: Key) {
        if !contains(key) { set(key, ()) }
    }
}

/// Either branches or a leaf. Changed only where one map alone has it.
///
/// Safe: the node owns its memory; places below `count` are initialized.
@safe private final class SharedMapNode<Key: SharedMapKey, Value> {
    struct Entry {
        var spread: UInt64
        var key: Key
        var value: Value
    }

    private static var leafSize: Int { 8 }
    /// Where the bits of a hash end; a leaf here holds however many there are.
    private static var greatestDepth: Int { 16 }

    private var children: UnsafeMutablePointer<SharedMapNode?>?
    private(set) var entries: UnsafeMutablePointer<Entry>
    private(set) var count = 0
    private var capacity: Int

    init(capacity: Int = SharedMapNode.leafSize) {
        self.capacity = capacity
        unsafe entries = .allocate(capacity: capacity)
    }

    deinit {
        unsafe entries.deinitialize(count: count)
        unsafe entries.deallocate()
        guard let children = unsafe children else { return }
        for index in 0..<16 { unsafe children[index] = nil }
        unsafe children.deallocate()
    }

    /// The children, nil for a leaf. Owned by this node: valid as long as it is.
    @inline(__always)
    var branches: UnsafePointer<Unmanaged<SharedMapNode>?>? {
        // A reference and an unmanaged one are the same word.
        unsafe children.map { unsafe UnsafeRawPointer($0).assumingMemoryBound(to: Unmanaged<SharedMapNode>?.self) }
    }

    func copy() -> SharedMapNode {
        guard let children = unsafe children else {
            let node = SharedMapNode(capacity: max(capacity, Self.leafSize))
            unsafe node.entries.initialize(from: entries, count: count)
            node.count = count
            return node
        }
        let node = SharedMapNode(capacity: 0)
        let copies = UnsafeMutablePointer<SharedMapNode?>.allocate(capacity: 16)
        // One by one: copying them as an array goes through the type's description for each.
        unsafe copies.initialize(repeating: nil, count: 16)
        for index in 0..<16 { unsafe copies[index] = unsafe children[index] }
        unsafe node.children = unsafe copies
        return node
    }

    /// - Returns: False if the key was there.
    func set(_ entry: Entry, depth: Int) -> Bool {
        if let children = unsafe children {
            let child = unsafe children + Self.branch(of: entry.spread, depth)
            if unsafe child.pointee == nil {
                unsafe child.pointee = SharedMapNode()
            } else if unsafe !isKnownUniquelyReferenced(&child.pointee) {
                unsafe child.pointee = unsafe child.pointee?.copy()
            }
            return unsafe child.pointee?.set(entry, depth: depth + 1) ?? false
        }
        for index in 0..<count where unsafe entries[index].spread == entry.spread && entries[index].key == entry.key {
            unsafe entries[index].value = entry.value
            return false
        }
        if count == capacity {
            guard depth == Self.greatestDepth else {
                branch(depth)
                return set(entry, depth: depth)
            }
            grow()
        }
        unsafe (entries + count).initialize(to: entry)
        count += 1
        return true
    }

    func forEach(_ body: (Key, Value) throws -> Void) rethrows {
        for index in 0..<count { unsafe try body(entries[index].key, entries[index].value) }
        guard let children = unsafe children else { return }
        for index in 0..<16 { unsafe try children[index]?.forEach(body) }
    }

    static func forEachUnshared(_ left: SharedMapNode?, _ right: SharedMapNode?, _ body: (Key) -> Void) {
        if left === right { return }
        guard let leftChildren = unsafe left?.children, let rightChildren = unsafe right?.children else {
            left?.forEach { key, _ in body(key) }
            right?.forEach { key, _ in body(key) }
            return
        }
        for index in 0..<16 { unsafe forEachUnshared(leftChildren[index], rightChildren[index], body) }
    }

    private static func branch(of spread: UInt64, _ depth: Int) -> Int {
        Int(truncatingIfNeeded: (spread << UInt64(depth * 4)) >> 60)
    }

    /// Makes branches of a leaf.
    private func branch(_ depth: Int) {
        let branches = UnsafeMutablePointer<SharedMapNode?>.allocate(capacity: 16)
        unsafe branches.initialize(repeating: nil, count: 16)
        unsafe children = unsafe branches
        let (old, oldCount) = unsafe (entries, count)
        unsafe (entries, count, capacity) = (.allocate(capacity: 0), 0, 0)
        for index in 0..<oldCount { _ = unsafe set((old + index).move(), depth: depth) }
        unsafe old.deallocate()
    }

    private func grow() {
        let larger = UnsafeMutablePointer<Entry>.allocate(capacity: capacity * 2)
        unsafe larger.moveInitialize(from: entries, count: count)
        unsafe entries.deallocate()
        unsafe (entries, capacity) = unsafe (larger, capacity * 2)
    }
}

extension UInt64: SharedMapKey {
    /// Numbers are given in order: a multiplication spreads them.
    @inline(__always)
    var spread: UInt64 { self &* 0x9E37_79B9_7F4A_7C15 }
}

extension UInt32: SharedMapKey {
    @inline(__always)
    var spread: UInt64 { UInt64(self).spread }
}

extension RecordField: SharedMapKey {
    var spread: UInt64 { (record.spread ^ UInt64(field)).spread }
}

extension ExactText: SharedMapKey {
    var spread: UInt64 {
        var text = text
        return text.withUTF8 { unsafe wideChecksum(UnsafeRawBufferPointer($0)) }
    }
}

extension SharedMap where Key == ExactText {
    /// The value of the text of these bytes.
    subscript(bytes: UnsafeRawBufferPointer) -> Value? {
        unsafe value(spread: wideChecksum(bytes)) { text in
            var text = text.text
            return text.withUTF8 { unsafe hasSameBytes(UnsafeRawBufferPointer($0), bytes) }
        }
    }

    func contains(_ bytes: UnsafeRawBufferPointer) -> Bool { unsafe self[bytes] != nil }
}
