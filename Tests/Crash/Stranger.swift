import Foundation
import Larder
import LarderRecords

/// Works on a store as a user who may only read it. As root, to whom everything is permitted, it becomes nobody first.
struct Stranger {
    enum Work: String {
        case read, write
        /// Reads while another reads too, and says so before it ends.
        case linger
        /// Queues a mutation in a store in which this user may write but for what concerns mutations.
        case queue
    }

    let folder: URL
    let work: Work

    func run() async throws {
        if geteuid() == 0 {
            // The numbers that all systems give to nobody, or as good.
            guard setgroups(0, nil) == 0, setgid(65_534) == 0, setuid(65_534) == 0 else { exit(3) }
        }
        do {
            var options = Store.Options()
            options.isReadOnly = work == .read || work == .linger
            options.lockTimeout = .milliseconds(300)
            let (store, app) = try open(options)
            if work == .queue {
                _ = try await app.enqueue(GraphQLOperation("mutation { shelve(id: 1) { id } }"))
                return say("queued")
            }
            if work == .write { try await app.write(shelf, json: shelfData(2)) }
            say("reads \(try wholeNumber(app.read(shelf)) ?? -1)")
            if work == .linger {
                // Until the other end is closed.
                while let line = readLine() {
                    do { say("\(line) \(try wholeNumber(app.read(shelf)) ?? -1)") } catch {
                        say("\(line) \(error.code.rawValue)")
                    }
                }
            }
            try store.close()
        } catch let error as LarderError {
            say("refused \(error.code.rawValue): \(error.message)")
        }
    }
}
