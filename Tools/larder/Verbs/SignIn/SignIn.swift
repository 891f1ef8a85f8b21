import ArgumentParser
import Foundation
import Larder
import LarderAWS
import LarderCommandLine
import LarderFiles

struct SignInVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "sign-in",
        abstract: "Signs a user in to the environment's user pool, and stores the credentials.",
        discussion: """
            Asks for what the user pool wants, one thing after the other; what is secret is not shown as it is typed. \
            Where standard input is no terminal, its lines answer the questions in their order, and the first failure \
            ends the command. The secret of the client, where it has one, comes from LARDER_CLIENT_SECRET.
            """)

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var options: SignInOptions
    @OptionGroup var way: FlowOption

    func perform(_ output: Output) async throws {
        try await store.folder(partition).signIn(by: way, options, output)
    }
}

/// How a sign-in begins, also the one after a sign-up.
struct FlowOption: ParsableArguments {
    @Option(help: ArgumentHelp("How the sign-in begins.", valueName: "flow"))
    var flow: Name = .proof

    enum Name: String, ExpressibleByArgument, CaseIterable {
        case proof, password, choice, custom

        var flow: CognitoUserPool.Flow {
            switch self {
            case .proof: .passwordProof
            case .password: .password
            case .choice: .choice()
            case .custom: .custom
            }
        }
    }
}

struct SignUpVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "sign-up",
        abstract: "Makes an account in the environment's user pool, confirms it and signs the user in.",
        discussion: "Asks as sign-in does.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var options: SignInOptions
    @OptionGroup var way: FlowOption
    @Option(
        name: .customLong("attribute"),
        help: ArgumentHelp(
            "What the account is asked for beside name and password. May be given several times. Default: email.",
            valueName: "name"))
    var attributes: [String] = []

    func perform(_ output: Output) async throws {
        let asked = attributes.isEmpty ? ["email"] : attributes
        try await store.folder(partition).signIn(by: way, signingUp: asked, options, output)
    }
}

struct SignOutVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "sign-out",
        abstract: "Forgets the credentials of a partition, and tells the user pool if it can be reached.",
        discussion: "What is queued stays, and is sent when the user has signed in again.")

    @OptionGroup var store: StoreOptions
    @OptionGroup var partition: PartitionOptions
    @OptionGroup var options: SignInOptions

    func perform(_ output: Output) async throws {
        let left = try await store.folder(partition).withSession(options, output) { access in
            try await access.session.signOut(within: .seconds(options.timeout))
        }
        try output.result(
            .object([
                ("state", .string(SessionState.signedOut.rawValue)), ("unsentMutations", .int(left.unsentMutations)),
                ("deadLetters", .int(left.deadLetters)), ("unsentUploads", .int(left.unsentUploads)),
                ("serverTold", left.isServerTold.map(JSONText.boolean) ?? .null),
            ]),
            text: "signed out\(left.isServerTold == false ? ", and the user pool could not be told" : "")"
                + (left.unsentMutations + left.unsentUploads == 0
                    ? ""
                    : "; not sent yet: \(left.unsentMutations.counted("mutation")) and "
                        + left.unsentUploads.counted("upload")))
    }
}

extension StoreFolder {
    /// - Parameter attributes: What a new account is asked for; nil where none is to be made.
    fileprivate func signIn(
        by way: FlowOption, signingUp attributes: [String]? = nil, _ options: SignInOptions, _ output: Output
    ) async throws {
        let standing = try await withSession(options, output) { access in
            var flow = SignInFlow.Options()
            flow.programName = "larder"
            flow.expectedUser = access.user
            flow.timeout = .seconds(options.timeout)
            flow.flow = way.flow.flow
            flow.signUpAttributes = attributes
            let screen = await SignInScreen(
                SignInFlow(access.userPool, session: access.session, options: flow), options.languages, output)
            if attributes != nil { await screen.flow.perform(.signUp) }
            try await screen.run()
            return try access.session.standing()
        }
        try output.result(
            .object([("state", .string(standing.state.rawValue))]), text: Output.oneLine("\(standing)"))
    }
}
