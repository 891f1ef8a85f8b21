public import ArgumentParser
import Foundation
public import Larder
import LarderCommandLine
import LarderRecords

/// The server that a verb asks, and how.
struct RequestOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Where the server takes operations, by HTTP or HTTPS.", valueName: "url"))
    var endpoint: String
    @Option(
        name: .customLong("error-policy"),
        help: ArgumentHelp(
            "What becomes of an answer that has errors beside its data.", valueName: "policy"))
    var errorPolicy: ErrorPolicy = .fail
    @Option(
        name: .customLong("header"),
        help: ArgumentHelp(
            "A header of the request. May be given several times.", valueName: "'Name: value'"))
    var headers: [String] = []
    @Option(help: ArgumentHelp("How long the whole exchange may take.", valueName: "seconds"))
    var timeout: Double = 30

    func url() throws(Failure) -> URL {
        try URLArgument.http(
            endpoint, "The endpoint", remedy: "say what authorizes the request by --header 'Authorization: …'.")
    }

    func fetchOptions() throws(Failure) -> FetchOptions {
        guard timeout > 0, timeout <= 86_400 else {
            throw Failure(usage: "The timeout must be more than 0 and at most 86400 seconds")
        }
        var parsed: [GraphQLRequest.Header] = []
        for header in headers {
            let parts = header.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let name = parts[0].trimmingCharacters(in: .whitespaces)
            guard parts.count == 2, !name.isEmpty else {
                // Its value may be a secret, and may stand before the colon that is missing.
                throw Failure(usage: "A header is not of the form 'Name: value'")
            }
            parsed.append(.init(name: name, value: parts[1].trimmingCharacters(in: .whitespaces)))
        }
        return FetchOptions(errorPolicy: errorPolicy, timeout: .seconds(timeout), headers: parsed)
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

extension ErrorPolicy: ExpressibleByArgument {}
