import ArgumentParser

/// One run of the tool, from its arguments to its exit status.
enum Program {
    static func run(_ arguments: [String]) async -> ExitStatus {
        var output = Output(command: "larder", isJSON: arguments.prefix { $0 != "--" }.contains("--json"))
        do {
            let parsed = try parse(arguments)
            guard let verb = parsed as? any Verb else {
                // Only the help command is no verb; running it throws the help.
                var help = parsed
                try help.run()
                return .success
            }
            output = Output(command: type(of: verb).name, isJSON: verb.store.json)
            try await verb.perform(output)
            return .success
        } catch let closed as StandardFiles.Closed {
            // Whoever read the output has seen enough.
            _ = closed
            return .success
        } catch let request as HelpRequest {
            output.help(request.text)
            return .success
        } catch {
            let failure = Failure(error)
            output.failed(failure)
            return failure.exit
        }
    }

    private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
        do { return try LarderTool.parseAsRoot(arguments) } catch {
            guard !LarderTool.exitCode(for: error).isSuccess else {
                throw HelpRequest(text: LarderTool.fullMessage(for: error, columns: nil))
            }
            throw Failure(usage: LarderTool.message(for: error), code: .usage)
        }
    }
}

/// What `--help` and `--version` ask for.
struct HelpRequest: Error {
    var text: String
}
