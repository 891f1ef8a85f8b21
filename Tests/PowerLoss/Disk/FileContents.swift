import Foundation

/// The bytes of a file: what is surely on the disk, what was written since and may be, and what programs see.
struct FileContents {
    enum Change {
        /// - Parameter isSure: It is on the disk; here only to keep its place before and after others.
        case write(offset: Int, bytes: Data, isSure: Bool)
        case resize(Int)
        case allocate(Int)
    }

    private(set) var durable = Data()
    private(set) var pending: [Change] = []
    /// Everything that was written, also what a failed sync has kept from the disk.
    private(set) var seen = Data()

    mutating func write(_ bytes: Data, at offset: Int, isSynced: Bool) {
        if isSynced { durable.put(bytes, at: offset) }
        change(.write(offset: offset, bytes: bytes, isSure: isSynced))
    }

    mutating func resize(to size: Int) { change(.resize(size)) }
    mutating func allocate(to end: Int) { change(.allocate(end)) }

    private mutating func change(_ change: Change) {
        pending.append(change)
        seen.apply(change)
    }

    /// What was written since the last sync does not come to the disk any more, unless it is written once more. What
    /// the file system notes by itself, sizes, may.
    mutating func failToSynchronize() {
        pending.removeAll { change in
            guard case .write(_, _, let isSure) = change else { return false }
            return !isSure
        }
    }

    mutating func synchronize() {
        durable = all
        pending = []
    }

    /// With everything that may come to the disk.
    var all: Data {
        var bytes = durable
        for change in pending { bytes.apply(change) }
        return bytes
    }

    /// What a power cut leaves.
    func left(_ fate: PowerCut.Fate, by random: inout some RandomNumberGenerator) -> Data {
        switch fate {
        case .lost: durable
        case .kept: all
        case .torn: torn(by: &random)
        }
    }

    /// What a power cut may leave: of what was not synced, each sector of each write is there or not, in no order.
    func torn(by random: inout some RandomNumberGenerator) -> Data {
        guard !pending.isEmpty else { return durable }
        var bytes = durable
        /// How many of the changes, in their order, are there at all; past them none is.
        let isInOrder = Int.random(in: 0..<4, using: &random) == 0
        let reach = isInOrder ? Int.random(in: 0...pending.count, using: &random) : .max
        /// A file that was cut and not in truth: what was written past that has no place on the disk either.
        var limit = Int.max
        for (index, change) in pending.enumerated() {
            switch change {
            case .write(let offset, let written, true): bytes.put(written, at: offset)
            case .write(let offset, let written, false):
                guard index < reach, offset + written.count <= limit else { continue }
                switch Int.random(in: 0..<8, using: &random) {
                case 0...2: continue
                case 3...5: bytes.put(written, at: offset)
                default: bytes.put(sectorsOf: written, at: offset, &random)
                }
            case .resize(let size):
                let isThere = index < reach && Bool.random(using: &random)
                if isThere { bytes.resize(to: size) } else if size < bytes.count { limit = min(limit, size) }
            case .allocate:
                if index < reach, Bool.random(using: &random) { bytes.apply(change) }
            }
        }
        // The length may be there without the bytes, which are zeros then.
        if limit == .max, Bool.random(using: &random) { bytes.resize(to: max(bytes.count, all.count)) }
        return bytes
    }
}

extension Data {
    fileprivate mutating func apply(_ change: FileContents.Change) {
        switch change {
        case .write(let offset, let bytes, _): put(bytes, at: offset)
        case .resize(let size): resize(to: size)
        case .allocate(let end): resize(to: Swift.max(count, end))
        }
    }

    fileprivate mutating func resize(to size: Int) {
        // Zeros, where it grows.
        count = size
    }

    fileprivate mutating func put(_ bytes: Data, at offset: Int) {
        guard !bytes.isEmpty else { return }
        if count < offset + bytes.count { resize(to: offset + bytes.count) }
        replaceSubrange(offset..<offset + bytes.count, with: bytes)
    }

    /// Puts each of the sectors, or does not.
    fileprivate mutating func put(
        sectorsOf bytes: Data, at offset: Int, _ random: inout some RandomNumberGenerator
    ) {
        let sector = 512
        var next = bytes.startIndex
        while next < bytes.endIndex {
            let place = offset + (next - bytes.startIndex)
            let end = Swift.min(bytes.endIndex, next + sector - place % sector)
            if Bool.random(using: &random) { put(bytes[next..<end], at: place) }
            next = end
        }
    }
}
