import LarderGraphQL
import LarderOperations

/// Asks the program's functions what the runner cannot know: how a conflict ends, and whether a mutation took effect.
/// It changes nothing: what follows from a reply is the runner's work.
struct ProgramQuestions: Sendable {
    enum Reply<Answer: Sendable>: Sendable {
        case answer(Answer)
        /// The function threw or did not answer in time, as where it needs the network too: it may be asked again.
        case silence(String)
        /// There is no such function, or what it says cannot be used: it would say the same again.
        case unusable(String)
    }

    enum Resolution: Sendable {
        case keepServers
        /// It is sent again with these variables, a JSON object.
        case retry([UInt8])
        case setAside
    }

    enum Outcome: Sendable {
        /// It did; with the response as the server would have sent it, empty where that is not known.
        case tookEffect([UInt8])
        case hadNoEffect
        case unknown
    }

    private let options: MutationRunner.Options
    private let executor: any TaskExecutor

    /// - Parameter executor: Runs the program's functions, which may block.
    init(_ options: MutationRunner.Options, on executor: any TaskExecutor) {
        (self.options, self.executor) = (options, executor)
    }

    /// What its resolver says to a conflict. The texts of the reply go on where the failure's message ends.
    func resolution(of mutation: Mutation, _ failure: MutationFailure) async -> Reply<Resolution> {
        guard let name = mutation.content.resolver, let resolver = options.resolvers[name] else { return .unusable("") }
        let text = "; the resolver \(name) did not decide: "
        return await reply(to: mutation, failure, resolver, text) { resolution in
            switch resolution {
            case .keepServers: .keepServers
            case .retry(let variables): .retry(try Value.object(variables).checkedJSON)
            case .setAside: .setAside
            }
        }
    }

    /// What its check says of a mutation whose answer was lost.
    func outcome(of mutation: Mutation, _ failure: MutationFailure) async -> Reply<Outcome> {
        guard let name = mutation.content.checkQuery, let check = options.checks[name] else { return .unusable("") }
        let text = "; the check \(name) did not answer: "
        return await reply(to: mutation, failure, check, text) { outcome in
            switch outcome {
            case .tookEffect(let response):
                .tookEffect(try response.map { try Value.object(["data": $0]).checkedJSON } ?? [])
            case .hadNoEffect: .hadNoEffect
            case .unknown: .unknown
            }
        }
    }

    private func reply<Said: Sendable, Answer: Sendable>(
        to mutation: Mutation, _ failure: MutationFailure,
        _ function: @escaping @Sendable (MutationInQuestion) async throws -> Said, _ text: String,
        _ answer: (Said) throws -> Answer
    ) async -> Reply<Answer> {
        let question: MutationInQuestion
        do {
            question = MutationInQuestion(
                id: MutationID(mutation.id), operation: try PartitionCore.operation(of: mutation),
                idempotencyKey: mutation.idempotencyKey, serverErrors: GraphQLError.list(failure.details))
        } catch { return .unusable("\(text)\(error)") }
        let said: Said
        do {
            said = try await answering(within: options.questionTimeout, on: executor) { try await function(question) }
        } catch {
            return .silence("\(text)\(error)")
        }
        do { return .answer(try answer(said)) } catch { return .unusable("\(text)\(error)") }
    }
}
