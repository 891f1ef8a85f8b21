import ArgumentParser

/// One run of the tool, from its arguments to its exit status.
enum Program {
    static func run(_ arguments: [String]) async -> ExitStatus {
        var output = Output(command: "larder", isJSON: arguments.prefix { $0 != "--" }.contains("--json"))
        do {
            let verb = try parse(arguments)
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

    private static func parse(_ arguments: [String]) throws -> any Verb {
        do {
            var parsed = try LarderTool.parseAsRoot(arguments)
            if let verb = parsed as? any Verb { return verb }
            // The tool by itself and its help command are no verbs: running them throws the help.
            try parsed.run()
            throw HelpRequest(text: LarderTool.helpMessage())
        } catch let request as HelpRequest { throw request } catch {
            guard !LarderTool.exitCode(for: error).isSuccess else {
                throw HelpRequest(text: LarderTool.fullMessage(for: error))
            }
            throw Failure(usage: LarderTool.message(for: error))
        }
    }
}

/// What `--help` asks for.
struct HelpRequest: Error {
    var text: String
}
