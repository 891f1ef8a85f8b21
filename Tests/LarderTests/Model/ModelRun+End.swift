import Foundation
import Larder
import LarderOperations
import Testing

extension ModelRun {
    /// All that is queued goes its way, and the cache is the server's.
    func finish() async throws {
        if runner != nil { _ = try await stop() }
        connectivity.set(true)
        model.runner.isConnected = true
        try await settle("the runner is stopped")
        while !model.items.isEmpty {
            startRunner(untilEmpty: true)
            try await settle("the runner drains")
            while !model.isDrained {
                if model.inFlight.isEmpty { setClock(model.now.addingTimeInterval(3600)) }
                let what = try await endAttempt(isKind: true)
                try await settle("while draining: \(what)")
            }
            try await runner?.1.value
            runner = nil
            model.runner.isRunning = false
            for item in model.sorted where item.state == .deadLetter {
                // Those that were sent again and again are given up.
                if item.replays > 2 || model.replay(item.id, nil) != nil {
                    try await app.discardMutation(item.id, dependents: .release)
                    _ = model.discard(item.id, settingAside: false)
                } else {
                    try await app.replayMutation(item.id)
                }
            }
            try await settle("dead letters are replayed")
        }
        expectServersState()
        _ = try await fetch()
        try await settle("all is fetched")
        #expect(model.shown == model.base)
        for recipe in server.list { #expect(model.base.recipes[recipe] == server.recipes[recipe]) }
        #expect(try app.records.check().problems == [])
        try store.close()
        let database = try OperationsDatabase(folder: folder)
        let problems = try database.check().problems
        #expect(problems == [])
        try database.close()
    }

    /// What the cache knows is what the server has, but for what the program could not hear of.
    private func expectServersState() {
        for (recipe, fields) in model.base.recipes {
            for (name, field) in fields where !model.excused.contains("\(recipe) \(name)") {
                #expect(server.recipes[recipe]?[name] == field, "\(name) of \(recipe)")
            }
        }
    }
}
