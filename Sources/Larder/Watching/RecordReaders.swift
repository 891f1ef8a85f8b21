import LarderRecords

/// Who reads a record, by what they read of it: readers and what they read are numbers of `WatcherIndex`.
///
/// A commit asks for the readers of a field. Most records have one reader, and the others' readers read them in a few
/// ways, so that each way is asked whether it has the field. The root of all queries is read in as many ways as there
/// are operations: then the ways are found by their fields.
enum RecordReaders {
    /// Nearly all groups have one member, which needs no memory of its own.
    enum Group {
        case one(UInt32)
        case many(Set<UInt32>)
    }

    final class Ways {
        /// By what they read.
        fileprivate var readers: [UInt32: Group]
        /// What is read, by its fields; nil where the ways are few.
        fileprivate var byField: [UInt32: Group]?

        fileprivate init(_ readers: [UInt32: Group]) { self.readers = readers }
    }

    case one(_ reader: UInt32, _ number: UInt32)
    case several(Ways)

    /// More ways than this are found by their fields; fewer than half of it are not.
    private static let fewWays = 16

    mutating func add(_ reader: UInt32, reading number: UInt32, _ table: FieldSetTable) {
        let ways: Ways
        switch self {
        case .several(let known): ways = known
        case .one(let first, let firstNumber):
            ways = Ways([firstNumber: .one(first)])
            self = .several(ways)
        }
        let isNew = ways.readers[number] == nil
        ways.readers.add(reader, to: number)
        guard isNew else { return }
        if ways.byField != nil {
            for field in table[number].fields { ways.byField?.add(number, to: field) }
        } else if ways.readers.count > Self.fewWays {
            var byField: [UInt32: Group] = [:]
            for number in ways.readers.keys {
                for field in table[number].fields { byField.add(number, to: field) }
            }
            ways.byField = byField
        }
    }

    /// - Returns: Whether there are readers left.
    func remove(_ reader: UInt32, reading number: UInt32, _ table: FieldSetTable) -> Bool {
        guard case .several(let ways) = self else {
            // The one that was added.
            return false
        }
        ways.readers.remove(reader, from: number)
        if ways.readers.count < Self.fewWays / 2 {
            ways.byField = nil
        } else if ways.readers[number] == nil, ways.byField != nil {
            for field in table[number].fields { ways.byField?.remove(number, from: field) }
        }
        return !ways.readers.isEmpty
    }

    /// - Parameters:
    ///   - field: With `RecordField.any`, all readers are concerned.
    ///   - body: Called with each reader, with some perhaps twice.
    /// - Complexity: O(r) in the readers that it calls, and O(f) in the fields of at most sixteen sets.
    func forEach(concernedBy field: UInt32, _ table: FieldSetTable, _ body: (UInt32) -> Void) {
        switch self {
        case .one(let reader, let number): if table[number].isConcerned(by: field) { body(reader) }
        case .several(let ways):
            guard let byField = ways.byField, field != RecordField.any else {
                for (number, readers) in ways.readers where table[number].isConcerned(by: field) {
                    readers.forEach(body)
                }
                return
            }
            for field in [field, RecordField.any] {
                byField[field]?.forEach { ways.readers[$0]?.forEach(body) }
            }
        }
    }
}

extension RecordReaders.Group {
    fileprivate func forEach(_ body: (UInt32) -> Void) {
        switch self {
        case .one(let member): body(member)
        case .many(let members): members.forEach(body)
        }
    }
}

extension [UInt32: RecordReaders.Group] {
    fileprivate mutating func add(_ member: UInt32, to key: UInt32) {
        // Taken out of the dictionary, the set is changed in place.
        switch removeValue(forKey: key) {
        case nil, .one(member)?: self[key] = .one(member)
        case .one(let other)?: self[key] = .many([other, member])
        case .many(var others)?:
            others.insert(member)
            self[key] = .many(others)
        }
    }

    fileprivate mutating func remove(_ member: UInt32, from key: UInt32) {
        switch removeValue(forKey: key) {
        case nil, .one(member)?: break
        case .one(let other)?: self[key] = .one(other)
        case .many(var others)?:
            others.remove(member)
            if !others.isEmpty { self[key] = .many(others) }
        }
    }
}

/// Numbers for what is read of records: many watchers read in the same few ways.
struct FieldSetTable {
    private var sets: [FieldSet?] = []
    private var uses: [Int] = []
    private var numbers: [FieldSet: UInt32] = [:]
    private var free: [UInt32] = []

    var isEmpty: Bool { numbers.isEmpty }

    /// - Parameter number: One that is used.
    subscript(number: UInt32) -> FieldSet { sets[Int(number)] ?? FieldSet([RecordField.any]) }

    mutating func use(_ set: FieldSet) -> UInt32 {
        if let known = numbers[set] {
            uses[Int(known)] += 1
            return known
        }
        let number = free.popLast() ?? UInt32(truncatingIfNeeded: sets.count)
        if Int(number) == sets.count {
            sets.append(set)
            uses.append(1)
        } else {
            (sets[Int(number)], uses[Int(number)]) = (set, 1)
        }
        numbers[set] = number
        return number
    }

    mutating func leave(_ number: UInt32) {
        uses[Int(number)] -= 1
        guard uses[Int(number)] == 0, let set = sets[Int(number)] else { return }
        sets[Int(number)] = nil
        numbers[set] = nil
        free.append(number)
    }
}

/// Short numbers for watchers, each of which another watcher has once it is left.
struct Places {
    private var watchers: [WatcherIndex.WatcherID] = []
    private var free: [UInt32] = []

    subscript(place: UInt32) -> WatcherIndex.WatcherID { watchers[Int(place)] }

    mutating func take(_ watcher: WatcherIndex.WatcherID) -> UInt32 {
        guard let place = free.popLast() else {
            watchers.append(watcher)
            return UInt32(truncatingIfNeeded: watchers.count - 1)
        }
        watchers[Int(place)] = watcher
        return place
    }

    mutating func leave(_ place: UInt32) { free.append(place) }
}
