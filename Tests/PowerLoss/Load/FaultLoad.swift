package import Foundation
import Larder
import LarderRecords

/// What a program does whose disk fails now and then: it queues mutations, stores answers, compacts, closes and opens
/// again, and goes on after every failure. Nothing is sent.
///
/// What it was promised it marks at once:
///
/// ```
/// accepted ID     enqueue has returned
/// unknown ID      enqueue has thrown operations.commitUnknown
/// present ID      the program has asked then, and was told that the mutation is queued
/// absent ID       that it is not
/// failed CODE     something else has failed
/// closed STARS    the store was closed, and the answer with that many stars was stored before
/// ```
package struct FaultLoad: Sendable {
    /// What a program does about a failure.
    package enum Answer: UInt64, Sendable, CaseIterable {
        /// Closes the store, and opens it again.
        case reopens
        /// Asks what became of it, where it can, and goes on.
        case goesOn
        /// Ends at once, as if it were killed.
        case dies
    }

    package let folder: URL
    package let marks: Marks
    package let answer: Answer
    package let lives: Int

    package init(folder: URL, marks: Marks, answer: Answer, lives: Int) {
        (self.folder, self.marks, self.answer, self.lives) = (folder, marks, answer, lives)
    }

    package func run() async throws {
        var stars = 0
        for life in 0..<lives {
            let (store, app) = try open()
            let before = (try? app.read("Recipe:plain", PowerLossLoad.card))?["stars"]?.int ?? 0
            stars = max(stars, Int(before))
            // Whoever has read keeps SQLite from removing the log at the end.
            _ = try app.hasUnsentMutations()
            var stored = stars
            var isWell = true
            for step in 0..<4 where isWell {
                if try await !queue(app) { isWell = survives() }
                guard isWell else { break }
                do {
                    stars += 1
                    try await app.write("Recipe:plain", PowerLossLoad.card, data(stars))
                    stored = stars
                    if life % 3 == 1, step == 1 { _ = try await app.records.compact() }
                } catch {
                    marks("failed", "\(error)")
                    isWell = survives()
                }
            }
            do {
                try store.close()
                marks("closed", "\(stored)")
            } catch { marks("failed", "\(error)") }
        }
    }

    /// Whether to go on after a failure.
    private func survives() -> Bool {
        if answer == .dies { _exit(0) }
        return answer == .goesOn
    }

    private func data(_ stars: Int) -> Value { ["title": "Porridge", "stars": .int(Int64(stars))] }

    private func open() throws -> (Store, Partition) {
        do { return try tryToOpen() } catch {
            marks("failed", "\(error)")
            return try tryToOpen()
        }
    }

    private func tryToOpen() throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        return (store, try store.partition(server: RecipeLedger()))
    }

    /// False where the mutation was not accepted.
    private func queue(_ app: Partition) async throws -> Bool {
        let id = MutationID(UUID())
        let operation = GraphQLOperation(
            "mutation Add($title: String!) { add(title: $title) { id title stars } }",
            variables: ["title": .string("\(id)")])
        do {
            _ = try await app.enqueue(operation, options: MutationOptions(id: id))
            marks("accepted", "\(id)")
            return true
        } catch {
            guard error.code.rawValue == "operations.commitUnknown", error.mutation == id else {
                marks("failed", error.code.rawValue)
                return false
            }
            marks("unknown", "\(id)")
            guard answer == .goesOn else { return false }
            marks(try app.mutation(id).status() == nil ? "absent" : "present", "\(id)")
            return false
        }
    }
}
