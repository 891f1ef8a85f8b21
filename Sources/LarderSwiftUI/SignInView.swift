#if canImport(SwiftUI)
public import Larder
public import LarderAWS
public import SwiftUI

/// A sign-in screen: draws a `SignInFlow` from its first step to its end. Not compiled where this is developed.
///
/// ```swift
/// .sheet(isPresented: $isSigningIn) {
///     SignInView(SignInFlow(pool, session: session)) { isSigningIn = false }
/// }
/// ```
///
/// A passkey is the system's own interface: the program is asked for it by `passkey`.
public struct SignInView: View {
    /// Asks the system for a passkey: the options of the request and the answer are JSON. Nil where the user gave up.
    public typealias Passkey = @MainActor (_ options: String) async -> String?

    @State private var flow: SignInFlow
    @State private var values: [String: String] = [:]
    private let texts: SignInTexts
    private let errors: ErrorTexts
    private let passkey: Passkey?
    private let end: @MainActor () -> Void

    /// - Parameters:
    ///   - flow: The sign-in that is shown.
    ///   - texts: The screen's texts; nil for the library's in the user's language.
    ///   - errors: The texts of failures; nil for the library's in the user's language.
    ///   - passkey: Asks the system for the user's passkey.
    ///   - end: Is called when the user is signed in, or has given up: `flow.state.step` says which.
    public init(
        _ flow: SignInFlow, texts: SignInTexts? = nil, errors: ErrorTexts? = nil, passkey: Passkey? = nil,
        end: @escaping @MainActor () -> Void
    ) {
        _flow = State(initialValue: flow)
        self.texts = texts ?? SignInTexts(languages: Locale.preferredLanguages)
        self.errors = errors ?? ErrorTexts(languages: Locale.preferredLanguages)
        self.passkey = passkey
        self.end = end
    }

    /// The fields and buttons of the step.
    public var body: some View {
        let state = flow.state
        Form {
            Section(texts.title(of: state.step)) {
                if let explanation = texts.explanation(of: state.step) { Text(explanation) }
                if case .setUpAuthenticator(let secret, let uri) = state.step {
                    Text(secret).textSelection(.enabled)
                    if let url = URL(string: uri) { Link(uri, destination: url) }
                }
                ForEach(state.fields.filter { $0.kind != .credential }) { field in row(field, state) }
                if let failure = state.failure { Text(errors.text(for: failure)).foregroundStyle(.red) }
            }
            ForEach(state.actions, id: \.self) { action in
                Button(texts.label(of: action, at: state.step), role: action == .cancel ? .cancel : nil) {
                    perform(action, at: state.step)
                }
                .disabled(state.isWorking && action != .cancel)
            }
        }
        .onChange(of: state.hasEnded) { _, hasEnded in if hasEnded { end() } }
    }

    @ViewBuilder
    private func row(_ field: SignInField, _ state: SignInState) -> some View {
        let value = Binding(get: { values[field.id] ?? field.value }, set: { values[field.id] = $0 })
        Group {
            if field.isSecret {
                SecureField(texts.label(of: field), text: value)
            } else {
                TextField(texts.label(of: field), text: value)
            }
        }
        .foregroundStyle(state.refusedFields.contains(field.id) ? Color.red : Color.primary)
        if let rules = field.rules {
            ForEach(rules.violations(of: value.wrappedValue), id: \.self) { violation in
                Text(texts.text(for: violation, of: rules)).font(.footnote)
            }
        }
    }

    private func perform(_ action: SignInAction, at step: SignInState.Step) {
        Task {
            if action == .submit, case .passkey(let options) = step {
                guard let credential = await passkey?(options) else { return }
                values["credential"] = credential
            }
            await flow.perform(action, values)
            // What was entered stays where it can be put right; a secret goes with its step.
            if flow.state.failure == nil { values = values.filter { $0.key == "name" } }
        }
    }
}
#endif
