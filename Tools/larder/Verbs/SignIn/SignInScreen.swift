import Foundation
import Larder
import LarderAWS
import LarderCommandLine

/// A sign-in drawn in a terminal, or answered by the lines of a pipe.
@MainActor
final class SignInScreen {
    let flow: SignInFlow
    private let texts: SignInTexts
    private let errors: ErrorTexts
    private let output: Output
    private let questions = Questions()

    init(_ flow: SignInFlow, _ languages: [String], _ output: Output) {
        self.flow = flow
        texts = SignInTexts(languages: languages)
        errors = ErrorTexts(languages: languages)
        self.output = output
    }

    /// Goes on until the user is signed in.
    ///
    /// - Throws: The failure of a pipe's answers; `larder.cancelled` where the user gave up, or the input has ended.
    func run() async throws {
        while !flow.state.hasEnded {
            let state = flow.state
            show(state)
            guard let action = try await action(of: state) else { return try await giveUp() }
            if action == .resendCode, let time = state.resendTime, time > Date() {
                questions.say(texts.resendPause(Int(time.timeIntervalSinceNow.rounded(.up))))
                continue
            }
            var values: [String: String] = [:]
            if Self.takesFields(action) {
                for field in state.fields {
                    guard let value = try await questions.ask(texts.label(of: field), isSecret: field.isSecret) else {
                        return try await giveUp()
                    }
                    if !value.isEmpty { values[field.id] = value }
                }
            }
            await perform(action, values)
            // Nobody is there to put it right.
            if let failure = flow.state.failure, !questions.isTerminal { throw told(failure) }
        }
        if flow.state.step == .cancelled { try await giveUp() }
        if questions.isTerminal { questions.say(texts.title(of: flow.state.step)) }
    }

    /// Does what the user chose. An interrupt gives it up while the pool is asked, unless its answer has come.
    private func perform(_ action: SignInAction, _ values: [String: String]) async {
        let working = Task { await flow.perform(action, values) }
        let (ends, end) = AsyncStream.makeStream(of: Never.self)
        Task {
            await working.value
            end.finish()
        }
        if await questions.isInterrupted(before: { for await _ in ends {} }) {
            await flow.perform(.cancel)
            if flow.state.hasEnded { return }
        }
        await working.value
    }

    /// The failure, with what the user can do in the user's language. What only the owner of the pool can mend is told as
    /// for every tool.
    private func told(_ failure: LarderError) -> Failure {
        var told = Failure(failure)
        if ![.askForHelp, .nothing].contains(failure.remedy) { told.advice = errors.text(for: failure) }
        return told
    }

    private func giveUp() async throws {
        await flow.perform(.cancel)
        if questions.isTerminal { questions.say(texts.title(of: flow.state.step)) }
        throw told(LarderError(.cancelled, "The sign-in was given up"))
    }

    private func show(_ state: SignInState) {
        guard questions.isTerminal else { return }
        questions.say(texts.title(of: state.step))
        if let explanation = texts.explanation(of: state.step) { questions.say(explanation) }
        if case .setUpAuthenticator(let secret, let uri) = state.step { questions.say("\(secret)\n\(uri)") }
        guard let failure = state.failure else { return }
        questions.say(errors.text(for: failure))
        // The user can only ask for help, and the person who is asked needs the reason.
        guard failure.remedy == .askForHelp else { return }
        questions.say(failure.message)
        questions.say(output.hint(for: Failure(failure)))
    }

    /// What the user chooses; nil where the input has ended. A pipe is asked only where there is no usual action.
    private func action(of state: SignInState) async throws -> SignInAction? {
        let actions = state.actions.filter { questions.isTerminal || $0 != .cancel && $0 != .back }
        guard let usual = actions.first else { return nil }
        let mustChoose = usual != .submit
        guard actions.count > 1, mustChoose || questions.isTerminal else { return usual }
        if questions.isTerminal || !output.isJSON {
            for (number, action) in actions.enumerated() {
                questions.say("\(number + 1) \(texts.label(of: action, at: state.step))")
            }
        }
        while true {
            guard let text = try await questions.ask("1-\(actions.count)", isSecret: false) else { return nil }
            if text.isEmpty { return usual }
            if let number = Int(text), actions.indices.contains(number - 1) { return actions[number - 1] }
            guard questions.isTerminal else {
                throw Failure(usage: "A number from 1 to \(actions.count) was expected in standard input")
            }
        }
    }

    private static func takesFields(_ action: SignInAction) -> Bool {
        switch action {
        case .submit, .choose: true
        case .resendCode, .forgotPassword, .signUp, .back, .cancel: false
        }
    }
}
