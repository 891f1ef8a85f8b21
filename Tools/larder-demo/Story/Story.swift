import Foundation
import Larder
import LarderHTTP
import RecipeServer

/// What is shown, step by step. Every line it prints was checked before.
final class Story {
    let folder: URL
    let options: DemoOptions
    let server: RecipeServer
    let http: MeasuredTransport
    let printout: Printout
    let claims: Claims
    var store: Store
    var app: Partition

    // What later steps compare with, and the closing figures.
    var fetchDuration = Duration.zero
    var readDuration = Duration.zero
    var unanswered: Unanswered?

    /// A mutation whose sender died before the answer came, and what the server had counted before it.
    struct Unanswered {
        var id: MutationID
        var received: Int
        var effects: Int
    }

    init(
        folder: URL, options: DemoOptions, server: RecipeServer, http: MeasuredTransport, printout: Printout,
        claims: Claims
    ) throws {
        self.folder = folder
        self.options = options
        self.server = server
        self.http = http
        self.printout = printout
        self.claims = claims
        store = try Store.open(at: folder, schemaText: [RecipeServer.schema], options: .quiet)
        app = try store.partition(server: http)
    }

    deinit { try? store.close() }

    func tell() async throws {
        introduce()
        try await fetchCold()
        try await readAgain()
        try await watchOtherQuery()
        try await findByArgument()
        try await watchObject()
        try await restart()
        try await restartHard()
        try await loseServer()
        try await askUnknown()
        try await queueAndDie()
        try await dieBeforeAnswer()
        try await takeEffectOnce()
        try await beRejected()
        try await signIn()
        try await startElsewhere()
        try await comeBack()
        try await signInAgain()
        try await transfer()
        try await listAll()
        try await useCloud()
        try await followOthers()
        try close()
    }

    /// The cookbook as the cache has it.
    func cookbook() throws -> Response { try app.read(Cookbook().operation) }

    /// The titles of the cookbook's recipes, by their ids.
    func titles(_ cookbook: Response?) -> [String: String] {
        let items = cookbook?["recipes"]?["items"]?.elements ?? []
        let pairs = items.compactMap { item in
            if let id = item["id"]?.string, let title = item["title"]?.string { (id, title) } else { nil }
        }
        return Dictionary(pairs) { first, _ in first }
    }

    private func introduce() {
        printout.title("Larder: GraphQL answers from disk, shown against a real server")
        printout.subtitle("What follows is measured now, and checked before it is printed.")
        printout.step(1, "A server, and an empty store")
        printout.say(server.url.absoluteString + ", in this process")
        printout.fact("latency added to its answers", options.latency == .zero ? "none" : Figures.text(options.latency))
        printout.fact("objects it holds: recipes, steps, comments, authors, ingredients", server.objectCount)
        printout.say("the store: " + folder.path)
    }

    /// As a shell takes it.
    private static func quoted(_ path: String) -> String {
        guard path.contains(where: { !($0.isLetter || $0.isNumber || "/._-+".contains($0)) }) else { return path }
        return "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }

    private func close() throws {
        try store.close()
        printout.step(24, "In short")
        printout.fact("the fetch", fetchDuration)
        printout.fact("the same from disk", readDuration)
        printout.fact("requests the server saw in all", server.requestCount)
        printout.fact(
            "mutations it received, and carried out", "\(server.mutationCount), \(server.effectCount)")
        printout.fact("the store on disk", Figures.text(bytes: StoreFolder.bytes(in: folder)))
        if options.keepsStore {
            printout.say("The store is left where it is. To look into it:")
            printout.command("swift run -c release larder ls --store \(Self.quoted(folder.path))")
        } else {
            printout.say("The store is removed now. To keep one and look into it:")
            printout.command("Tools/demo --store my-recipes")
            printout.command("swift run -c release larder ls --store my-recipes")
        }
    }
}
