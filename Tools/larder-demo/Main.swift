import Foundation

/// Shows what Larder does, against a real server, and checks all that it says.
@main struct Main {
    private enum Status {
        static let failed: Int32 = 1
        static let impossible: Int32 = 2
        /// What shells expect of a program that Ctrl-C has ended.
        static let interrupted: Int32 = 130
    }

    static func main() async {
        let options: DemoOptions
        do { options = try DemoOptions(Array(CommandLine.arguments.dropFirst())) } catch {
            complain("\(error.message)\n\(DemoOptions.usage)")
            exit(Status.impossible)
        }
        if options.asksForHelp {
            try? FileHandle.standardOutput.write(contentsOf: Data(DemoOptions.usage.utf8))
            return
        }
        if let child = options.child, let store = options.store {
            await workUntilKilled(as: child.role, store: store, server: child.server)
        }

        let demonstration = Task { await Demonstration(options: options).run() }
        let interruption = Interruption { demonstration.cancel() }
        let outcome = await demonstration.value
        withExtendedLifetime(interruption) {}
        exit(report(outcome, options, wasInterrupted: demonstration.isCancelled))
    }

    private static func report(
        _ outcome: Demonstration.Outcome, _ options: DemoOptions, wasInterrupted: Bool
    ) -> Int32 {
        switch outcome {
        case .held(let claims):
            let leftOut = claims.leftOut.map { " Left out: \($0)." } ?? ""
            Printout(isQuiet: options.isQuiet).verdict("All \(claims.count) claims were checked, and hold.\(leftOut)")
            return 0
        case .impossible(let message):
            complain(message)
            return Status.impossible
        case .failed where wasInterrupted:
            complain(options.keepsStore ? "interrupted" : "interrupted; the store is removed")
            return Status.interrupted
        case .failed(let mismatch as Mismatch):
            complain("not so: \(mismatch.claim)\n  expected: \(mismatch.expected)\n  found:    \(mismatch.found)")
            return Status.failed
        case .failed(let error):
            complain("\(error)")
            return Status.failed
        }
    }

    private static func workUntilKilled(as role: KilledChild.Role, store: URL, server: URL) async -> Never {
        do {
            switch role {
            case .writer: try await KilledWriter.write(store: store, server: server)
            case .sender: try await KilledSender.send(store: store, server: server)
            case .carrier: try await KilledCarrier.carry(store: store, storage: server)
            }
        } catch { complain("child: \(error)") }
        exit(Status.failed)
    }

    private static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("larder-demo: \(text)\n".utf8))
    }
}
