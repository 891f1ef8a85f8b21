import Foundation
import Larder
import LarderTestSupport
import RecipeServer
import Testing

@Suite("Verbs on a store whose program keeps a token on its device", .timeLimit(.minutes(10)))
struct CopiedStoreVerbTests {
    private static let rate = "mutation { rateRecipe(id: 2, stars: 4) { __typename id rating } }"

    /// A store in which a mutation is queued, a copy of it, and the tokens of the device.
    private func withStores(
        _ body: (_ server: RecipeServer, _ folder: URL) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.deviceTokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
            let store = try Store.open(
                at: folder.appending(path: "store"), schemaText: [RecipeServer.schema], options: options)
            try await store.partition().enqueue(GraphQLOperation(Self.rate))
            try store.close()
            try FileManager.default.copyItem(
                at: folder.appending(path: "store"), to: folder.appending(path: "copy"))
            let server = try await RecipeServer.start()
            do { try await body(server, folder) } catch {
                try? await server.stop()
                throw error
            }
            try await server.stop()
        }
    }

    @Test("run sends nothing unless it is given the device's tokens, which know a copy, or told that it is none")
    func run() async throws {
        try await withStores { server, folder in
            func run(_ store: String, _ arguments: String...) async throws -> Outcome {
                try await larder(store, arguments)
            }
            func larder(_ store: String, _ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(
                    [
                        "run", "--until-idle", "--endpoint", server.url.absoluteString, "--json", "--store",
                        folder.appending(path: store).path,
                    ] + arguments)
            }
            let tokens = folder.appending(path: "tokens").path
            func expectRefused(_ outcome: Outcome, _ reason: String) {
                #expect(outcome.status == 4, "\(outcome.errors)")
                #expect(outcome.errors.contains(#""code":"command.mayBeCopy""#), "\(outcome.errors)")
                #expect(outcome.errors.contains(reason), "\(outcome.errors)")
                #expect(outcome.output == "")
            }
            expectRefused(try await run("store"), "keeps a token on its device")
            expectRefused(try await run("store", "--device-tokens", folder.path), "is a copy, or is of another device")
            let sent = try await run("store", "--device-tokens", tokens)
            #expect(sent.status == 0 && sent.output.contains(#""sent":1"#), "\(sent.errors)")
            // The run has replaced the token, so that the device does not know the copy.
            expectRefused(try await run("copy"), "keeps a token on its device")
            expectRefused(try await run("copy", "--device-tokens", tokens), "is a copy, or is of another device")
            let again = try await run("store", "--device-tokens", tokens)
            #expect(again.status == 0 && again.output.contains(#""sent":0"#), "\(again.errors)")
            let told = try await run("copy", "--not-a-copy")
            #expect(told.status == 0 && told.output.contains(#""sent":1"#), "\(told.errors)")
            for unusable in [
                ["--not-a-copy", "--device-tokens", tokens], ["--device-tokens", folder.appending(path: "none").path],
            ] {
                #expect(try await larder("store", unusable).status == 2)
            }
        }
    }
}
