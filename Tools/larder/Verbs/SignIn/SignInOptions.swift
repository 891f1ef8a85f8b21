import ArgumentParser
import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderCommandLine
import LarderHTTP
import LarderOperations

/// Which user pool is asked, and in which language.
struct SignInOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Another place that speaks as Cognito does, such as a local stack.", valueName: "url"))
    var endpoint: String?
    @Option(
        help: ArgumentHelp(
            "The language, such as ja or en. Default: that of the environment (LC_ALL, LC_MESSAGES, LANG).",
            valueName: "language"))
    var locale: String?
    @Option(help: ArgumentHelp("How long each exchange with the user pool may take.", valueName: "seconds"))
    var timeout: Double = 30

    func validate() throws {
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("The timeout must be more than 0 and at most 86400 seconds.")
        }
    }

    var languages: [String] {
        let environment = ProcessInfo.processInfo.environment
        let said =
            locale ?? ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        // Such as ja_JP.UTF-8.
        return said.map { [$0.prefix { $0 != "." }.lowercased()] } ?? []
    }

    func userPoolOptions() throws(Failure) -> CognitoUserPool.Options {
        var options = CognitoUserPool.Options()
        if let endpoint {
            options.endpoint = try URLArgument.http(
                endpoint, "The endpoint", remedy: "the user's name and password are asked for.")
        }
        return options
    }
}

/// A partition's session, and the pools of its environment.
struct SessionAccess {
    let session: Session
    /// To whom the partition belongs; nil for a guest's.
    let user: String?
    let cognito: CognitoIdentityProvider
    let userPool: CognitoUserPool
}

extension URL {
    fileprivate var isOfThisMachine: Bool {
        guard let host = host()?.lowercased() else { return false }
        return ["localhost", "::1", "[::1]"].contains(host)
            || host.hasPrefix("127.") && host.allSatisfy { $0 == "." || $0.isNumber }
    }
}

extension StoreFolder {
    /// Runs `body` with the session of the partition, which belongs to an environment with a user pool.
    ///
    /// - Throws: `larder.noUserPool` where its environment has none.
    func withSession<Result>(
        _ options: SignInOptions, _ output: Output, _ body: (SessionAccess) async throws -> Result
    ) async throws -> Result {
        let userPoolOptions = try options.userPoolOptions()
        if let endpoint = userPoolOptions.endpoint, endpoint.scheme?.lowercased() == "http", !endpoint.isOfThisMachine {
            output.note("the endpoint is not encrypted: what is entered can be read, and changed, on the way to it")
        }
        let result = try await withOperations(.writing, output) { database in
            let stored = try database.environments.partition(partition)
            guard let name = stored?.environment, let environment = try database.environments.find(name)
            else {
                throw LarderError(
                    .noEnvironment, "The partition belongs to no environment; add one with a user pool and switch to it"
                )
            }
            var backend = try BackendEnvironment(definition: environment.definition, name: environment.name)
            // Where no list of processes shows it.
            backend.clientSecret = ProcessInfo.processInfo.environment["LARDER_CLIENT_SECRET"].flatMap {
                $0.isEmpty ? nil : $0
            }
            return try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                let cognito = CognitoIdentityProvider(environment: backend, client: client, userPool: userPoolOptions)
                guard let userPool = cognito.userPool else {
                    throw LarderError(
                        .noUserPool, "The environment \(environment.name) has no user pool; add it to its definition")
                }
                var store = Store.Options()
                store.label = "the larder command"
                let session = Session(
                    database: database, partition: partition, identity: environment.fingerprints.identity,
                    keys: store.keys(besides: url), provider: cognito, locksFolder: url.appending(path: "locks"),
                    options: store.session)
                let access = SessionAccess(
                    session: session, user: stored?.user, cognito: cognito, userPool: userPool)
                return try await body(access)
            }
        }
        guard let result else {
            throw LarderError(.noEnvironment, "The store has no environment; add one with a user pool and switch to it")
        }
        return result
    }
}
