import Larder
import LarderTesting
import Testing

@Suite("Keys in memory", .timeLimit(.minutes(2)))
struct InMemoryKeyProviderTests {
    private let soon = Duration.seconds(60)

    @Test("There is no key until the first is made, and one that is there is not made anew")
    func made() async throws {
        let provider = InMemoryKeyProvider()
        let missing = await #expect(throws: KeyError.self) { try await provider.keys(within: soon) }
        #expect(missing?.code == .missing)
        let unchanged = await #expect(throws: KeyError.self) { try await provider.addKey(within: soon) }
        #expect(unchanged?.code == .missing)
        let first = try await provider.makeKey(within: soon)
        let again = try await provider.makeKey(within: soon)
        let found = try await provider.keys(within: soon)
        #expect(again == first && found == first && first.previous.isEmpty)
    }

    @Test("A new key is in use, the former one is the first of the older ones, and the one in use stays")
    func changed() async throws {
        let provider = InMemoryKeyProvider(MasterKeys(current: MasterKey(), previous: [MasterKey()]))
        let before = try await provider.keys(within: soon)
        let added = try await provider.addKey(within: soon)
        #expect(added.current != before.current && added.previous == [before.current] + before.previous)
        try await provider.dropKeys([added.current.id, before.current.id], within: soon)
        let left = try await provider.keys(within: soon)
        #expect(left.current == added.current && left.previous == before.previous)
    }

    @Test("Locked keys are told as that, and are the same when they are unlocked")
    func locked() async throws {
        let keys = MasterKeys(current: MasterKey())
        let provider = InMemoryKeyProvider(keys, behaviour: .locked)
        let errors = [
            await #expect(throws: KeyError.self) { try await provider.keys(within: soon) },
            await #expect(throws: KeyError.self) { try await provider.makeKey(within: soon) },
            await #expect(throws: KeyError.self) { try await provider.addKey(within: soon) },
        ]
        #expect(errors.map { $0?.code } == [.locked, .locked, .locked])
        #expect(provider.reads == 1)
        provider.behaviour = .ready
        let found = try await provider.keys(within: soon)
        #expect(found == keys)
    }

    @Test("Keys that are locked, or that are not there, are not dropped, and the caller is told why")
    func undropped() async throws {
        let keys = MasterKeys(current: MasterKey(), previous: [MasterKey()])
        let ids = Set(keys.previous.map(\.id))
        let provider = InMemoryKeyProvider(keys, behaviour: .locked)
        let locked = await #expect(throws: KeyError.self) { try await provider.dropKeys(ids, within: soon) }
        #expect(locked?.code == .locked)
        provider.behaviour = .ready
        let found = try await provider.keys(within: soon)
        #expect(found == keys)
        let empty = InMemoryKeyProvider()
        let missing = await #expect(throws: KeyError.self) { try await empty.dropKeys(ids, within: soon) }
        #expect(missing?.code == .missing)
    }

    @Test("A provider of keys in memory says that they are in memory")
    func described() {
        #expect(InMemoryKeyProvider().description.contains("in memory"))
    }

    @Test("A hanging provider does not answer a cancelled call until its behaviour changes")
    func hanging() async throws {
        let keys = MasterKeys(current: MasterKey())
        let provider = InMemoryKeyProvider(keys, behaviour: .hanging)
        let asking = Task { [soon] in try await provider.keys(within: soon) }
        asking.cancel()
        // A call that heeds its cancellation would end within this time; there is no signal to wait for.
        try await Task.sleep(for: .milliseconds(50))
        provider.behaviour = .ready
        let found = try await asking.value
        #expect(found == keys)
    }

    @Test("A slow provider of keys answers after its time")
    func slow() async throws {
        let keys = MasterKeys(current: MasterKey())
        let provider = InMemoryKeyProvider(keys, behaviour: .slow(.milliseconds(30)))
        let begun = ContinuousClock.now
        let found = try await provider.keys(within: soon)
        #expect(ContinuousClock.now - begun >= .milliseconds(30))
        #expect(found == keys)
    }
}
