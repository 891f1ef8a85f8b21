package import ArgumentParser

/// One run of a tool, from its arguments to its exit status.
package enum Program {
    /// What `--version` prints.
    package static let version = "0.1 (not released)"

    /// - Parameter root: What the tool's verbs are verbs of.
    package static func run<Root: ParsableCommand>(
        _ root: Root.Type, as tool: Output.Tool, _ arguments: [String]
    ) async -> ExitStatus {
        var output = Output(
            tool: tool, command: verbName(of: root, arguments) ?? tool.name,
            isJSON: arguments.prefix { $0 != "--" }.contains("--json"))
        do {
            let verb = try parse(root, arguments)
            output = Output(tool: tool, command: type(of: verb).name, isJSON: verb.store.json)
            try await verb.perform(output)
            return .success
        } catch let closed as StandardFiles.Closed {
            // The reader of the output has seen enough.
            _ = closed
            return .success
        } catch let end as Ended {
            for hint in end.hints { output.hint(hint) }
            return end.status
        } catch let request as HelpRequest {
            output.help(request.text)
            return .success
        } catch {
            let failure = Failure(error)
            output.failed(failure)
            return failure.exit
        }
    }

    private static func parse<Root: ParsableCommand>(_ root: Root.Type, _ arguments: [String]) throws -> any Verb {
        do {
            var parsed = try root.parseAsRoot(arguments)
            if let verb = parsed as? any Verb { return verb }
            // The tool by itself and its help command are no verbs: running them throws the help.
            try parsed.run()
            throw HelpRequest(text: root.helpMessage())
        } catch let request as HelpRequest { throw request } catch {
            guard !root.exitCode(for: error).isSuccess else {
                throw HelpRequest(text: root.fullMessage(for: error))
            }
            if let unknown = unknownVerb(of: root, arguments) {
                throw Failure(
                    usage: "There is no verb '\(unknown.name)'; '\(unknown.parent) --help' lists the verbs")
            }
            throw Failure(usage: root.message(for: error))
        }
    }

    /// The verb that the arguments begin with, with that of the verb it belongs to; nil where they name none.
    private static func verbName(of root: any ParsableCommand.Type, _ arguments: [String]) -> String? {
        var (command, path): (any ParsableCommand.Type, [String]) = (root, [])
        for argument in arguments {
            guard let verb = command.configuration.subcommands.first(where: { $0._commandName == argument }) else {
                break
            }
            path.append(argument)
            command = verb
        }
        // Where a verb has verbs, its options are those of the one that is meant when none is named.
        if let usual = command.configuration.defaultSubcommand,
            arguments.count == path.count || arguments[path.count].hasPrefix("-"), let verb = usual as? any Verb.Type
        {
            return verb.name
        }
        return path.isEmpty ? nil : path.joined(separator: " ")
    }

    /// The argument that stands where a verb must, and names none, with the command that has the verbs. The parser
    /// would complain of the options behind it, which no verb is there to take.
    private static func unknownVerb(
        of root: any ParsableCommand.Type, _ arguments: [String]
    ) -> (name: String, parent: String)? {
        var (command, path) = (root, [root._commandName])
        for argument in arguments {
            let verbs = command.configuration.subcommands
            guard !verbs.isEmpty, !argument.hasPrefix("-"), path.count > 1 || argument != "help" else { return nil }
            path.append(argument)
            guard let verb = verbs.first(where: { $0._commandName == argument }) else {
                return (path.dropFirst().joined(separator: " "), path.dropLast().joined(separator: " "))
            }
            command = verb
        }
        return nil
    }
}

/// Thrown by a verb that has printed its result, where that result is not a success.
package struct Ended: Error {
    package var status: ExitStatus
    /// What to do next, in lines for people; with `--json` the result has what is needed.
    let hints: [String]

    package init(_ status: ExitStatus, hint: String) {
        self.status = status
        hints = [hint]
    }

    /// - Parameter failures: What could not be done of several things, which is told, each with its subject.
    package init(_ status: ExitStatus, telling failures: [(subject: String, failure: Failure)], _ output: Output) {
        self.status = status
        hints = output.tell(failures)
    }
}

/// What `--help` asks for.
struct HelpRequest: Error {
    var text: String
}
