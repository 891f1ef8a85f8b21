import Foundation
import LarderFiles
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Closing", .timeLimit(.minutes(10)))
struct ClosingTests {
    private func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition())
    }

    @Test("A closed store opens no partition, whether it was open before or not")
    func closedForAll() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try open(folder.appending(path: "one"))
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try store.close()
            let never = try Store.open(at: folder.appending(path: "two"), schema: try Schema(parsing: fixtureSchema))
            try never.close()
            for closed in [store, never] {
                await expectCode(.parked) { _ = try closed.partition() }
                await expectCode(.parked) { _ = try closed.partition(of: backend("a")) }
                await expectCode(.parked) { _ = try closed.operationsDatabase() }
            }
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "two").path))
        }
    }

    @Test("Closing while watchers read and writes wait ends all of them, and what was acknowledged is there")
    func busy() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try open(folder)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let watchers = (0..<20).map { number in
                Task { () -> LarderError.Code? in
                    do throws(LarderError) { for await _ in try app.watch(recipe(1)) {} } catch { return error.code }
                    for await _ in app.watch("Recipe:\(number % 2)") {}
                    return nil
                }
            }
            let readers = (0..<4).map { _ in
                Task { () -> LarderError.Code? in
                    while true {
                        do throws(LarderError) { _ = try app.read(recipeList) } catch { return error.code }
                        await Task.yield()
                    }
                }
            }
            let writes = (0..<300).map { number in
                Task { () -> LarderError.Code? in
                    let card = GraphQLFragment("fragment Card on Cook { name }")
                    do throws(LarderError) { try await app.write("Cook:\(number)", card, ["name": "Ada"]) } catch {
                        return error.code
                    }
                    return nil
                }
            }
            try await Task.sleep(for: .milliseconds(10))
            try store.close()
            // One that began too late is told so.
            for watcher in watchers { #expect([nil, .parked].contains(await watcher.value)) }
            for reader in readers { #expect(await reader.value == .parked) }
            var acknowledged: [Int] = []
            for (number, write) in writes.enumerated() {
                let code = await write.value
                if code == nil { acknowledged.append(number) } else { #expect(code == .parked) }
            }
            #expect(app.core.watchers.isEmpty)
            let (again, reopened) = try open(folder)
            for number in acknowledged {
                let card = GraphQLFragment("fragment Card on Cook { name }")
                #expect(try reopened.read("Cook:\(number)", card)["name"]?.string == "Ada")
            }
            #expect(try reopened.records.check().isSound)
            try again.close()
        }
    }

    @Test("A closed store gives no partition, what it gave is parked, and it is opened anew")
    func closed() async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try open(folder)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try store.close()
            try store.close()
            #expect(throws: LarderError.self) { try store.partition() }
            do throws(LarderError) { _ = try store.partition() } catch { #expect(error.code == .parked) }
            do throws(LarderError) { _ = try app.read(recipeList) } catch { #expect(error.code == .parked) }
            let error = await #expect(throws: LarderError.self) { try await app.remove("Recipe:1", as: .deleted) }
            #expect(error?.code == .parked)
            await expectCode(.parked) { _ = try app.watch(recipeList) }
            await expectCode(.parked) { _ = try await app.watch(named: "list", recipeList) }
            await expectCode(.parked) { _ = try app.session }
            var states = app.watch("Recipe:1").makeAsyncIterator()
            #expect(await states.next() == nil)
            let (again, reopened) = try open(folder)
            #expect(try reopened.read(recipeList)["recipes"]?.count == 2)
            try again.close()
        }
    }

    @Test("A list of pages of a closed store is parked, as is asking for one")
    func closedPages() async throws {
        try await withOpenStore(schema: orderSchema) { (_, store, app) throws in
            let pages = try app.pages(orderList)
            try store.close()
            await expectCode(.parked) { _ = try pages.watch() }
            await expectCode(.parked) { _ = try app.pages(orderList) }
        }
    }

    @Test("A store whose folder is deleted while it is open reads on, and reopening makes a new one")
    func deleted() async throws {
        try await withTemporaryFolder { base in
            let folder = base.appending(path: "store")
            let (store, app) = try open(folder)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try FileManager.default.removeItem(at: folder)
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Soup")
            // What is written goes where nobody will find it, or is refused; it ends either way.
            do throws(LarderError) { try await app.write(recipeList, json: soupAndBread("Stew")) } catch {
                #expect(error.code.rawValue.hasPrefix("records."))
            }
            do throws(LarderError) { try store.close() } catch { #expect(error.code.rawValue.hasPrefix("records.")) }
            let (again, reopened) = try open(folder)
            #expect(throws: LarderError.self) { try reopened.read(recipeList) }
            try await reopened.write(recipeList, json: soupAndBread("Bisque"))
            #expect(try reopened.read(recipe(1))["recipe"]?["title"]?.string == "Bisque")
            #expect(try reopened.records.check().isSound)
            try again.close()
        }
    }

    @Test(
        "A store whose folder is deleted while it is open is cleared and compacted, or says why not",
        arguments: [true, false])
    func deletedAndCleared(_ clears: Bool) async throws {
        try await withTemporaryFolder { base in
            let folder = base.appending(path: "store")
            let (store, app) = try open(folder)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try FileManager.default.removeItem(at: folder)
            var failure: RecordError?
            do throws(RecordError) {
                if clears { _ = try await app.records.clear() } else { _ = try await app.records.compact() }
            } catch { failure = error }
            if let failure {
                #expect(failure.code.rawValue.hasPrefix("records."))
                #expect(try app.read(recipeList)["recipes"]?.count == 2, "what failed has changed nothing")
            } else {
                #expect(try app.read(recipeList, allowsPartial: true).isComplete != clears)
            }
            do throws(LarderError) { try store.close() } catch { #expect(error.code.rawValue.hasPrefix("records.")) }
            let (again, reopened) = try open(folder)
            #expect(try reopened.records.check().isSound)
            try again.close()
        }
    }

    @Test(
        "An update whose closure waits for another write gets an error at the deadline, and the store goes on",
        arguments: ["update", "write", "compact"])
    func nested(_ inner: String) async throws {
        var options = Store.Options()
        options.lockTimeout = .milliseconds(200)
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let (codes, told) = AsyncStream.makeStream(of: String?.self)
            try await app.update(recipeList) { _ in
                let isDone = DispatchSemaphore(value: 0)
                Task {
                    var code: String?
                    do {
                        switch inner {
                        case "update": try await app.update(recipeList) { _ in }
                        case "write": try await app.write(recipeList, json: soupAndBread("Stew"))
                        default: _ = try await app.records.compact()
                        }
                    } catch {
                        code =
                            (error as? LarderError)?.code.rawValue ?? (error as? RecordError)?.code.rawValue
                            ?? "\(error)"
                    }
                    told.yield(code)
                    isDone.signal()
                }
                isDone.wait()
            }
            var iterator = codes.makeAsyncIterator()
            #expect(await iterator.next() == "records.busy")
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Soup", "what came too late was not done")
            try await app.write(recipeList, json: soupAndBread("Bisque"))
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Bisque")
            #expect(try app.records.check().isSound)
        }
    }

    @Test("A write that waits behind a slow update is made when that has ended")
    func behindSlowUpdate() async throws {
        var options = Store.Options()
        options.lockTimeout = .seconds(20)
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let hasBegun = Flag()
            let slow = Task {
                try await app.update(recipeList) { _ in
                    hasBegun.set()
                    usleep(100_000)
                }
            }
            try await eventually { hasBegun.isSet }
            try await app.write(recipeList, json: soupAndBread("Stew"))
            try await slow.value
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Stew")
        }
    }

    #if os(Linux)
    @Test("A store closes each of its caches, also after one that could not be closed in order, and says so")
    func closesOthers() async throws {
        try await withTemporaryFolder { folder in
            let isFailing = Flag()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                isFailing.isSet && call.kind == .open && call.path.hasSuffix("/clean.stamp.new") ? .failure(EIO) : nil
            })
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            var handles: [Partition] = []
            for name in ["a", "b"] {
                let app = try await store.switch(to: backend(name)).partition
                try await app.write(recipeList, json: soupAndBread("Soup"))
                handles.append(app)
            }
            #expect(Set(try openFiles(below: folder).filter { $0.hasSuffix("/data.mdb") }).count == 2)
            isFailing.set()
            let error = #expect(throws: LarderError.self) { try store.close() }
            #expect(error?.code.rawValue.hasPrefix("records.") == true)
            #expect(try openFiles(below: folder).filter { $0.hasSuffix("/data.mdb") } == [])
            withExtendedLifetime(handles) {}
        }
    }
    #endif
}
