import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

/// The index of watchers beside one that asks every watcher.
@Suite("The index of watchers", .timeLimit(.minutes(10)))
struct WatcherIndexModelTests {
    private struct Model {
        var dependencies: [Int: (fields: Set<RecordField>, keys: Set<String>, generation: UInt64)] = [:]
        var anything: Set<Int> = []

        func concerned(_ fields: [RecordField], _ keys: [String], _ generation: UInt64) -> Set<Int> {
            let waiting = dependencies.filter { _, interest in
                if !interest.keys.isDisjoint(with: keys) { return true }
                return interest.generation == generation
                    && interest.fields.contains { wanted in
                        fields.contains { change in
                            wanted.record == change.record
                                && [change.field, RecordField.any].contains(wanted.field)
                                || wanted.record == change.record && change.field == RecordField.any
                        }
                    }
            }
            return anything.union(waiting.keys)
        }
    }

    @Test(
        "wakes just the watchers that a commit concerns, and has nothing left when all are gone",
        arguments: 0..<40 as Range<UInt64>)
    func model(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let index = WatcherIndex()
        let woken = Mutex<Set<Int>>([])
        var model = Model()
        var watchers: [Int: WatcherIndex.WatcherID] = [:]
        // Few records that are read in many ways, or many records.
        let (records, fields) = seed % 2 == 0 ? (3, 40) : (60, 5)
        func field(_ random: inout SeededNumbers) -> RecordField {
            let any = Int.random(in: 0..<12, using: &random) == 0
            return RecordField(
                record: UInt64(Int.random(in: 1...records, using: &random)),
                field: any ? RecordField.any : UInt32(Int.random(in: 1...fields, using: &random)))
        }
        func key(_ random: inout SeededNumbers) -> String { "Recipe:\(Int.random(in: 0..<6, using: &random))" }
        for step in 0..<600 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1:
                watchers[step] = index.add { _ in woken.withLock { woken in _ = woken.insert(step) } }
            case 2:
                guard let (number, id) = watchers.randomElement(using: &random) else { continue }
                index.remove(id)
                watchers[number] = nil
                model.dependencies[number] = nil
                model.anything.remove(number)
            case 3:
                guard let (number, id) = watchers.randomElement(using: &random) else { continue }
                #expect(index.setAnything(of: id, readAt: index.published))
                model.dependencies[number] = nil
                model.anything.insert(number)
            case 4, 5, 6:
                guard let (number, id) = watchers.randomElement(using: &random) else { continue }
                // Often nearly what it was.
                var wanted = Bool.random(using: &random) ? model.dependencies[number]?.fields ?? [] : []
                for _ in 0..<Int.random(in: 0..<12, using: &random) {
                    if Bool.random(using: &random), let old = wanted.randomElement(using: &random) {
                        wanted.remove(old)
                    }
                    wanted.insert(field(&random))
                }
                let keys = Set((0..<Int.random(in: 0..<3, using: &random)).map { _ in key(&random) })
                let generation = UInt64(Int.random(in: 0..<10, using: &random) == 0 ? 8 : 7)
                let dependencies = Dependencies(generation: generation, fields: wanted, absentKeys: keys)
                #expect(index.set(dependencies, of: id, readAt: index.published))
                model.dependencies[number] = (wanted, keys, generation)
                model.anything.remove(number)
            default:
                var changes = ChangeSet()
                changes.fields = (0..<Int.random(in: 0..<4, using: &random)).map { _ in field(&random) }
                changes.normalize()
                let keys = (0..<Int.random(in: 0..<2, using: &random)).map { _ in key(&random) }
                changes.createdKeys = KeyList(keys)
                let position = ChangePosition(epoch: 1, number: 1)
                index.publish(Commit(generation: 7, changes: changes, position: position))
                let found = woken.withLock { woken in
                    defer { woken = [] }
                    return woken
                }
                #expect(found == model.concerned(changes.fields, keys, 7), "seed \(seed), step \(step)")
            }
        }
        for id in watchers.values.shuffled(using: &random) { index.remove(id) }
        #expect(index.isEmpty)
    }

    @Test("What is noted are the dependencies that have something new, and all where all are asked for")
    func noted() throws {
        let index = WatcherIndex()
        let watcher = try #require(index.add { _ in })
        func take(_ fields: [RecordField], generation: UInt64 = 7, all: Bool = false) -> [[UInt64]] {
            let dependencies = Dependencies(generation: generation, fields: Set(fields), absentKeys: [])
            #expect(index.set(dependencies, of: watcher, readAt: index.published))
            return index.takeNoted(all: all).map(\.records)
        }
        let (one, two) = (RecordField(record: 1, field: 3), RecordField(record: 2, field: 3))
        #expect(take([one]) == [])
        #expect(index.beginNoting() && !index.beginNoting())
        #expect(take([one], all: true) == [[1]])
        #expect(take([one]) == [])
        #expect(take([one, two]) == [[1, 2]])
        #expect(take([two]) == [])
        #expect(take([two, RecordField(record: 2, field: 4)]) == [[2]])
        #expect(take([two, RecordField(record: 2, field: 4)], generation: 8) == [[2]])
        index.endNoting()
        #expect(take([one]) == [])
    }

    @Test("Dependencies name each record once, ascending, and what is read of each")
    func dependencies() {
        let high = UInt64.max - 1
        let fields: Set<RecordField> = [
            RecordField(record: 5, field: 9), RecordField(record: 5, field: 2), RecordField(record: 3, field: 9),
            RecordField(record: 3, field: RecordField.any), RecordField(record: 300, field: 2),
            RecordField(record: 300, field: 9), RecordField(record: high, field: .max),
        ]
        let dependencies = Dependencies(generation: 7, fields: fields, absentKeys: ["Recipe:1"])
        #expect(dependencies.records == [3, 5, 300, high])
        #expect(dependencies.fieldSet(of: 3)?.fields == [RecordField.any, 9])
        #expect(dependencies.fieldSet(of: 5)?.fields == [2, 9])
        #expect(dependencies.fieldSet(of: 300)?.fields == [2, 9])
        #expect(dependencies.fieldSet(of: high)?.fields == [.max])
        #expect(dependencies.fieldSet(of: 4) == nil)
        #expect(dependencies.fieldSets.count == 3)
    }
}
