public import ArgumentParser
import Foundation
public import Larder
import LarderAWS
import LarderCommandLine
import LarderHTTP
import LarderRecords

/// How a verb asks a server for an answer.
struct RequestOptions: ParsableArguments {
    @OptionGroup var server: ServerOptions
    @Option(
        name: .customLong("error-policy"),
        help: ArgumentHelp(
            "What becomes of an answer that has errors beside its data.", valueName: "policy"))
    var errorPolicy: ErrorPolicy = .fail
    @OptionGroup var time: TimeoutOptions

    func fetchOptions() throws(Failure) -> FetchOptions {
        FetchOptions(errorPolicy: errorPolicy, timeout: try time.value(), headers: try server.sentHeaders())
    }
}

/// How long a server has.
struct TimeoutOptions: ParsableArguments {
    @Option(help: ArgumentHelp("How long the whole exchange may take.", valueName: "seconds"))
    var timeout: Double = 30

    func value() throws(Failure) -> Duration {
        guard timeout > 0, timeout <= 86_400 else {
            throw Failure(usage: "The timeout must be more than 0 and at most 86400 seconds")
        }
        return .seconds(timeout)
    }
}

/// The server that a verb asks.
struct ServerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where the server takes operations, by HTTP or HTTPS. '@file' takes the URL from a file, as one with a query "
                + "has to be.", valueName: "url"))
    var endpoint: String
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A header of the request. May be given several times. 'Name: @file' takes the value from a file. Only that "
                + "of a header which is known to hold no secret, such as Accept-Language, can be said as it is.",
            valueName: "'Name: value'"))
    var headers: [String] = []
    @Option(
        name: .customLong("header-from"),
        help: ArgumentHelp(
            "A header whose value an environment variable has, such as 'Authorization: API_AUTHORIZATION'. May be given "
                + "several times.",
            valueName: "'Name: variable'"))
    var headersFrom: [String] = []
    @Option(
        help: ArgumentHelp(
            "Tell AppSync so who asks. The proof comes from LARDER_API_KEY, LARDER_TOKEN or AWS_ACCESS_KEY_ID.",
            valueName: "mode"))
    var auth: AuthorizationMode?
    @Option(help: ArgumentHelp("With --auth, a file with the API key or the token.", valueName: "file"))
    var proof: String?
    @Option(help: ArgumentHelp("With --auth iam, the API's region.", valueName: "name"))
    var region: String?

    func url() throws(Failure) -> URL {
        try URLArgument.http(
            endpoint, "The endpoint",
            remedy: "say what authorizes the request by --header-from 'Authorization: VARIABLE'.")
    }

    func sentHeaders() throws(Failure) -> [GraphQLRequest.Header] {
        var sent: [GraphQLRequest.Header] = []
        for header in headers {
            let (name, text) = try Self.parts(header, of: "'Name: value'")
            sent.append(.init(name: name, value: try Self.value(text, of: name)))
        }
        for header in headersFrom {
            let (name, variable) = try Self.parts(header, of: "'Name: VARIABLE'")
            guard let value = ProcessInfo.processInfo.environment[variable] else {
                throw Failure(
                    usage: "The environment variable that --header-from names for \(name) is not set; give its name")
            }
            sent.append(.init(name: name, value: value.trimmingCharacters(in: .whitespacesAndNewlines)))
        }
        return sent
    }

    /// - Parameter form: What the text is to be, for the error.
    private static func parts(_ header: String, of form: String) throws(Failure) -> (name: String, text: String) {
        let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts[0].trimmingCharacters(in: .whitespaces)
        guard parts.count == 2, !name.isEmpty else {
            // Its value may be a secret, and may stand before the colon that is missing.
            throw Failure(usage: "A header is not of the form \(form)")
        }
        return (name, parts[1].trimmingCharacters(in: .whitespaces))
    }

    /// Headers whose values are no secrets, in lowercase. Any other may prove who asks: servers choose its name.
    private static let openHeaders: Set = [
        "accept", "accept-encoding", "accept-language", "apollo-require-preflight", "apollographql-client-name",
        "apollographql-client-version", "cache-control", "content-language", "content-type", "graphql-preflight",
        "origin", "pragma", "prefer", "referer", "traceparent", "tracestate", "user-agent",
        "x-apollo-operation-id", "x-apollo-operation-name", "x-correlation-id", "x-hasura-role", "x-request-id",
    ]

    /// A header's value, which is a file's text where it begins with `@`.
    private static func value(_ text: String, of name: String) throws(Failure) -> String {
        guard text.hasPrefix("@") else {
            guard openHeaders.contains(name.lowercased()) else {
                throw Failure(
                    usage: "The value of \(name) may be a secret, and the list of processes would show it; give "
                        + "--header-from '\(name): VARIABLE', or write it into a file and give --header '\(name): @FILE'"
                )
            }
            return text
        }
        let value = try InputFile(role: "the header \(name)", path: String(text.dropFirst())).text()
        return value.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Runs `body`; an answer that cannot be used is the server's failure, and not that of the arguments.
    static func blamingServer<Result>(_ body: () async throws -> Result) async throws -> Result {
        do { return try await body() } catch let error as LarderError {
            var failure = Failure(error)
            let codes: [RecordError.Code] = [.responseMalformed, .tooLarge]
            if codes.contains(where: { $0.rawValue == failure.code }) { failure.exit = .failure }
            throw failure
        }
    }
}

extension ServerOptions {
    /// How an AppSync API is told who asks.
    enum AuthorizationMode: String, ExpressibleByArgument, CaseIterable {
        case apiKey = "api-key"
        case iam
        case userPool = "user-pool"
        case openIDConnect = "oidc"
        case lambda
    }

    /// Runs `body` with a transport to the server; an answer that cannot be used is the server's failure.
    ///
    /// - Parameter idempotency: How the server tells a repeat.
    func withTransport<Result>(
        idempotency: Idempotency? = nil, _ body: (any GraphQLTransport) async throws -> Result
    ) async throws -> Result {
        let (url, authorization) = (try url(), try authorization())
        var options = HTTPTransport.Options()
        options.idempotency = idempotency
        options.headers = try sentHeaders()
        return try await Self.blamingServer {
            guard let authorization else {
                return try await HTTPTransport.withTransport(to: url, options: options) { try await body($0) }
            }
            return try await AppSyncTransport.withTransport(to: url, authorization: authorization, options: options) {
                try await body($0)
            }
        }
    }

    /// Proofs come from the environment or a file, where no list of processes shows them.
    private func authorization() throws(Failure) -> AppSyncAuthorization? {
        guard let auth else {
            guard region == nil, proof == nil else { throw Failure(usage: "--region and --proof go with --auth") }
            return nil
        }
        switch auth {
        case .apiKey: return .apiKey(try secret("LARDER_API_KEY"))
        case .iam:
            guard let region, !region.isEmpty else { throw Failure(usage: "--auth iam wants the API's --region") }
            let credentials = try StorageOptions.credentials(for: "--auth iam")
            return .iam(region: region) { _, _ in credentials }
        case .userPool, .openIDConnect, .lambda:
            let token = try secret("LARDER_TOKEN")
            let source: AppSyncAuthorization.Source<String> = { _, _ in token }
            return auth == .userPool ? .userPool(source) : auth == .lambda ? .lambda(source) : .openIDConnect(source)
        }
    }

    private func secret(_ variable: String) throws(Failure) -> String {
        let given =
            try proof.map { (path) throws(Failure) in try InputFile(role: "the proof", path: path).text() }
            ?? ProcessInfo.processInfo.environment[variable]
        guard let text = given?.trimmingCharacters(in: .whitespacesAndNewlines), !text.isEmpty else {
            throw Failure(
                usage: "--auth \(auth?.rawValue ?? "") wants its proof in the environment variable \(variable), or in "
                    + "the file that --proof names")
        }
        return text
    }
}

extension ErrorPolicy: ExpressibleByArgument {}
