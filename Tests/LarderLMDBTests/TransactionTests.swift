import LarderTestSupport
import Testing

@testable import LarderLMDB

@Suite("Transactions", .timeLimit(.minutes(10)))
struct TransactionTests {
    @Test("Committed entries are read back by key")
    func readBack() async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            try environment.write { transaction in
                try transaction.put(7, bytes("seven").rawSpan, in: records)
                try transaction.put(bytes("Movie:7").rawSpan, bytes("7").rawSpan, in: keys)
            }
            let transaction = try environment.beginRead()
            #expect(try transaction.get(7, in: records).copied == bytes("seven"))
            #expect(try transaction.get(bytes("Movie:7").rawSpan, in: keys).copied == bytes("7"))
            #expect(try transaction.get(8, in: records).copied == nil)
            #expect(try transaction.entryCount(of: records) == 1)
        }
    }

    @Test("A snapshot does not see what is committed after it began")
    func snapshot() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("old").rawSpan, in: records) }
            let before = try environment.beginRead()
            try environment.write { try $0.put(1, bytes("new").rawSpan, in: records) }
            let after = try environment.beginRead()
            #expect(try before.get(1, in: records).copied == bytes("old"))
            #expect(try after.get(1, in: records).copied == bytes("new"))
            #expect(after.id == before.id + 1)
        }
    }

    @Test("A write transaction that is not committed leaves nothing")
    func rollback() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            func abandon() throws {
                var transaction = try environment.beginWrite(deadline: .now + .seconds(5))
                try transaction.put(1, bytes("x").rawSpan, in: records)
                #expect(try transaction.get(1, in: records).copied == bytes("x"))
                _ = consume transaction
            }
            try abandon()
            let transaction = try environment.beginRead()
            #expect(try transaction.get(1, in: records).copied == nil)
        }
    }

    @Test("A nested transaction that throws is rolled back whole, and the outer one goes on")
    func nestedRollback() async throws {
        struct Refusal: Error {}
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                try transaction.put(1, bytes("outer").rawSpan, in: records)
                #expect(throws: Refusal.self) {
                    try transaction.nested { nested in
                        try nested.put(1, bytes("inner").rawSpan, in: records)
                        try nested.put(2, bytes("inner").rawSpan, in: records)
                        throw Refusal()
                    }
                }
                try transaction.nested { try $0.put(3, bytes("kept").rawSpan, in: records) }
            }
            let transaction = try environment.beginRead()
            #expect(try transaction.get(1, in: records).copied == bytes("outer"))
            #expect(try transaction.get(2, in: records).copied == nil)
            #expect(try transaction.get(3, in: records).copied == bytes("kept"))
        }
    }

    @Test("Entries are appended one after the other; one out of order is refused, and the rest goes on")
    func append() async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            let long = Array(repeating: UInt8(9), count: 10_000)
            try environment.write { transaction in
                try transaction.put(3, bytes("3").rawSpan, in: records)
                try transaction.write(to: records) { end throws in
                    for key: UInt64 in 4...2_000 { try withUnsafeBytes(of: key) { try end.append(key, $0) } }
                    let failure = #expect(throws: LMDBError.self) { try long.withUnsafeBytes { try end.append(7, $0) } }
                    #expect(failure?.code == .appendOutOfOrder)
                    try long.withUnsafeBytes { try end.append(2_001, $0) }
                }
                try transaction.put(2, bytes("2").rawSpan, in: records)
                try transaction.write(to: keys) { end throws in
                    let failures = [
                        #expect(throws: LMDBError.self) { try long.withUnsafeBytes { try end.append(1, $0) } },
                        #expect(throws: LMDBError.self) { try long.withUnsafeBytes { try end.put(1, $0) } },
                        #expect(throws: LMDBError.self) { try end.remove(1) },
                    ]
                    #expect(failures.allSatisfy { $0?.code == .keyKindMismatch })
                }
            }
            let transaction = try environment.beginRead()
            #expect(try transaction.entryCount(of: records) == 2_000)
            for key: UInt64 in 4...2_000 {
                #expect(try transaction.get(key, in: records).copied == withUnsafeBytes(of: key) { Array($0) })
            }
            #expect(try transaction.get(2, in: records).copied == bytes("2"))
            #expect(try transaction.get(2_001, in: records).copied == long)
        }
    }

    @Test("An entry is removed once")
    func delete() async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            try environment.write { transaction in
                try transaction.put(1, bytes("x").rawSpan, in: records)
                try transaction.put(bytes("a").rawSpan, bytes("x").rawSpan, in: keys)
                #expect(try transaction.delete(1, in: records))
                #expect(try !transaction.delete(1, in: records))
                #expect(try transaction.delete(bytes("a").rawSpan, in: keys))
                #expect(try !transaction.delete(bytes("a").rawSpan, in: keys))
            }
            #expect(try environment.beginRead().entryCount(of: records) == 0)
        }
    }

    @Test("Many entries are stored and removed in one go, in whatever order", arguments: 0..<6)
    func manyEntries(round: Int) async throws {
        var random = SeededNumbers(seed: TestSeed.of("many entries", round))
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            func key(_ id: UInt64) -> [UInt8] { bytes("key \(id)") }
            func value(_ id: UInt64, _ turn: Int) -> [UInt8] {
                Array(repeating: UInt8(turn), count: Int((id + UInt64(turn) * 70) % 300))
            }
            var expected: [UInt64: [UInt8]] = [:]
            for turn in 0..<25 {
                let start = random.next() % 3_000
                let ids: [UInt64] =
                    round.isMultiple(of: 2)
                    ? (0..<400).map { start + $0 * UInt64(1 + round) } : (0..<400).map { _ in random.next() % 3_000 }
                let isRemoval = turn % 3 == 2
                try environment.write { transaction in
                    try transaction.write(to: records) { stored throws in
                        for id in ids {
                            if isRemoval {
                                #expect(try stored.remove(id) == (expected[id] != nil))
                                expected[id] = nil
                            } else {
                                let new = value(id, turn)
                                try new.withUnsafeBytes { try stored.put(id, $0) }
                                expected[id] = new
                            }
                        }
                    }
                    try transaction.write(to: keys) { stored throws in
                        for id in ids {
                            try key(id).withUnsafeBytes { key in
                                if isRemoval { _ = try stored.remove(key) } else { try stored.put(key, key) }
                            }
                        }
                        #expect(throws: LMDBError.self) {
                            try stored.remove(UnsafeRawBufferPointer(start: nil, count: 0))
                        }
                    }
                }
                let transaction = try environment.beginRead()
                #expect(try transaction.entryCount(of: records) == expected.count)
                #expect(try transaction.entryCount(of: keys) == expected.count)
                for (id, value) in expected {
                    #expect(try transaction.get(id, in: records).copied == value)
                    #expect(try transaction.get(key(id).rawSpan, in: keys).copied == key(id))
                }
            }
        }
    }

    @Test("A table is cleared")
    func clear() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                for id in 0..<2_000 as Range<UInt64> { try transaction.put(id, bytes("\(id)").rawSpan, in: records) }
            }
            try environment.write { try $0.clear(records) }
            #expect(try environment.beginRead().entryCount(of: records) == 0)
        }
    }

    @Test("Appending out of order is refused, and the transaction stays usable")
    func appendOrder() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                try transaction.put(5, bytes("5").rawSpan, in: records, append: true)
                let error = try failure { try transaction.put(4, bytes("4").rawSpan, in: records, append: true) }
                #expect(error?.code == .appendOutOfOrder)
                try transaction.put(6, bytes("6").rawSpan, in: records, append: true)
            }
            #expect(try environment.beginRead().entryCount(of: records) == 2)
        }
    }

    @Test("A key of 512 bytes is too long, one of 511 is not")
    func keyTooLong() async throws {
        try await withEnvironment { environment in
            let keys = try environment.keys
            try environment.write { transaction in
                let longest = [UInt8](repeating: 1, count: 511)
                try transaction.put(longest.rawSpan, longest.rawSpan, in: keys)
                let longer = [UInt8](repeating: 1, count: 512)
                let error = try failure { try transaction.put(longer.rawSpan, longer.rawSpan, in: keys) }
                #expect(error?.code == .keyTooLong)
                #expect(try transaction.get(longer.rawSpan, in: keys).copied == nil)
            }
        }
    }

    @Test("An empty key is refused everywhere")
    func emptyKey() async throws {
        try await withEnvironment { environment in
            let keys = try environment.keys
            let empty: [UInt8] = []
            try environment.write { transaction in
                expectFailure(.keyEmpty) { try transaction.put(empty.rawSpan, empty.rawSpan, in: keys) }
                expectFailure(.keyEmpty) { try transaction.delete(empty.rawSpan, in: keys) }
                expectFailure(.keyEmpty) { _ = try transaction.get(empty.rawSpan, in: keys).copied }
            }
        }
    }

    @Test("A key of the other kind is refused")
    func keyKind() async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            let name = bytes("abc")
            try environment.write { transaction in
                expectFailure(.keyKindMismatch) { try transaction.put(name.rawSpan, name.rawSpan, in: records) }
                expectFailure(.keyKindMismatch) { try transaction.put(1, name.rawSpan, in: keys) }
            }
            let transaction = try environment.beginRead()
            expectFailure(.keyKindMismatch) { _ = try transaction.get(1, in: keys).copied }
            var cursor = try transaction.cursor(in: keys)
            expectFailure(.keyKindMismatch) { _ = try cursor.value(at: 1).copied }
        }
    }

    @Test("Values of no bytes and of many pages are kept")
    func valueSizes() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            let sizes = [0, 1, 2_000, 2_030, 2_040, 4_080, 4_081, 100_000, 3_000_000]
            try environment.write { transaction in
                for (id, size) in sizes.enumerated() {
                    try transaction.put(UInt64(id), Array(repeating: UInt8(id), count: size).rawSpan, in: records)
                }
            }
            let transaction = try environment.beginRead()
            for (id, size) in sizes.enumerated() {
                #expect(try transaction.get(UInt64(id), in: records).copied == Array(repeating: UInt8(id), count: size))
            }
        }
    }

    @Test("A value of four gibibytes is refused, and the transaction goes on")
    func longValue() async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            try environment.write { transaction in
                try withUnsafeBytes(of: 1 as UInt64) { bytes in
                    // Its size alone is looked at.
                    let long = UnsafeRawBufferPointer(start: bytes.baseAddress, count: 1 << 32)
                    expectFailure(.valueTooLong) { try transaction.put(1, long, in: records) }
                    expectFailure(.valueTooLong) { try transaction.put(bytes, long, in: keys) }
                    try transaction.write(to: records) { stored throws in
                        let failures = [
                            #expect(throws: LMDBError.self) { try stored.put(1, long) },
                            #expect(throws: LMDBError.self) { try stored.append(1, long) },
                        ]
                        #expect(failures.allSatisfy { $0?.code == .valueTooLong })
                        try stored.put(1, bytes)
                    }
                }
            }
            #expect(try environment.beginRead().entryCount(of: records) == 1)
        }
    }

    @Test("A full map is a typed error, the transaction is over, and the environment works on")
    func mapFull() async throws {
        var options = Environment.Options.fast
        options.mapSize = 1 << 20
        try await withEnvironment(options) { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("kept").rawSpan, in: records) }
            let big = [UInt8](repeating: 1, count: 100_000)
            let error = try failure {
                try environment.write { transaction in
                    let first = try failure {
                        for id in 2..<100 as Range<UInt64> { try transaction.put(id, big.rawSpan, in: records) }
                    }
                    expectFailure(.transactionUnusable) { try transaction.put(1, big.rawSpan, in: records) }
                    if let first { throw first }
                }
            }
            #expect(error?.code == .mapFull)
            let transaction = try environment.beginRead()
            #expect(try transaction.get(1, in: records).copied == bytes("kept"))
            try environment.write { try $0.put(2, bytes("small").rawSpan, in: records) }
        }
    }

    @Test("Every transaction kind reads through the same protocol")
    func generic() async throws {
        func read(_ transaction: borrowing some Transaction & ~Copyable, _ table: Table) throws -> [UInt8]? {
            var cursor = try transaction.cursor(in: table)
            let one = try cursor.value(at: 1).copied
            #expect(try transaction.get(1, in: table).copied == one)
            return one
        }
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                try transaction.put(1, bytes("one").rawSpan, in: records)
                #expect(try read(transaction, records) == bytes("one"))
            }
            #expect(try read(try environment.beginRead(), records) == bytes("one"))
        }
    }
}
