import Foundation
import Larder
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@Suite("The migration lock while partitions are forgotten", .timeLimit(.minutes(10)))
struct ForgettingLockTests {
    @Test(
        "Forgetting holds the migration lock until the cache is removed, so that no process makes a backup meanwhile",
        arguments: [true, false])
    func held(isOfEnvironment: Bool) async throws {
        try await withTemporaryFolder { folder in
            let (isRemoving, isHeld) = (Flag(), Flag())
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                let isOfCache = (call.path as NSString).deletingLastPathComponent.hasSuffix("/records")
                guard call.kind == .rename, isOfCache else { return nil }
                isRemoving.set()
                if MigrationLock.holder(in: folder)?.contains("forgetting") == true { isHeld.set() }
                return nil
            })
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let title = GraphQLFragment("fragment F on Recipe { title }")
            try await store.partition(of: backend("a")).write("Recipe:1", title, ["title": "Soup"])
            let left = try #require(try store.current())
            _ = try await store.switch(to: backend("b"))
            if isOfEnvironment {
                try await store.forget(environment: "a")
            } else {
                try await store.forget(left)
            }
            #expect(isRemoving.isSet && isHeld.isSet)
            try store.close()
        }
    }

    @Test(
        "Forgetting waits for the migration lock as long as the store's options say, unless the call says otherwise",
        arguments: [true, false])
    func waits(isOfEnvironment: Bool) async throws {
        try await withTemporaryFolder { folder in
            let faults = InjectedFaults(at: .max) { _ in nil }
            func attempts() -> Int {
                faults.calls.count { $0.kind == .open && $0.path.hasSuffix("/locks/\(MigrationLock.fileName)") }
            }
            var options = Store.Options()
            options.files = faults.files
            options.lockTimeout = soon
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            _ = try store.partition(of: backend("a"))
            let left = try #require(try store.current())
            _ = try await store.switch(to: backend("b"))
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .zero)
            let (before, isOver) = (attempts(), Flag())
            let forgetting = Task {
                defer { isOver.set() }
                if isOfEnvironment {
                    try await store.forget(environment: "a")
                } else {
                    try await store.forget(left)
                }
            }
            try await eventually { attempts() >= before + 2 || isOver.isSet }
            lock.release()
            try await forgetting.value
            let names = try store.partitionIdentities().map(\.environment)
            #expect(names == ["b"])
            try store.close()
        }
    }
}
