import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Does to a list of pages what it is told, and says what was done and what the server was told, until it kills itself.
struct Booking {
    let folder: URL
    /// Where the clock stands, in seconds since 1970.
    let time: Int64
    let book: OrderBook
    let works: [String]

    /// - Parameter step: After how many steps it kills itself: each work, each request, each page that came and each
    ///   slice of a collection is one.
    func run(killedAfter step: Int) async throws {
        let count = Atomic(0)
        @Sendable func add() {
            guard count.add(1, ordering: .relaxed).newValue == step else { return }
            kill(getpid(), SIGKILL)
            sleep(3600)
        }
        let clock = Mutex(time)
        var options = Store.Options()
        options.now = { Date(timeIntervalSince1970: Double(clock.withLock { $0 })) }
        let server = book.transport { request in
            if request != "page" { say(request) }
            add()
        }
        let store = try Store.open(at: folder, schema: try Schema(parsing: OrderBook.schema), options: options)
        let app = try store.partition(server: server)
        for work in works {
            add()
            let words = work.split(separator: ":").map(String.init)
            let number = words.count > 1 ? Int(words[1]) ?? 0 : 0
            let pages = try app.pages(book.list)
            switch words[0] {
            case "next": _ = book.kind == .backward ? try await pages.previous() : try await pages.next()
            case "all": try await pages.all(startingOver: true) { _ in add() }
            case "refresh": try await pages.refresh()
            case "add", "drop":
                try await OrderBook.queue(words[0], number, in: pages, app)
                add()
                try await MutationRunner(app).drain()
            case "pin": try await app.pin(named: "list", book.list)
            case "unpin": try await app.unpin(named: "list")
            case "clock": clock.withLock { $0 += Int64(number) }
            case "let":
                try await app.evict(maxAge: .seconds(number))
                _ = try await app.collectGarbage(sliceTime: .zero) { _ in add() }
            default: exit(2)
            }
            say("did \(work)")
        }
        kill(getpid(), SIGKILL)
        sleep(3600)
    }
}
