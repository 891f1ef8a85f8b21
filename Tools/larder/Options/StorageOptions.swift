import ArgumentParser
import Foundation
import Larder
import LarderAWS
import LarderCommandLine

/// Where an object storage is. Its keys come from the environment, where no list of processes shows them.
struct StorageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The storage's region, such as eu-west-1.", valueName: "name"))
    var region: String?
    @Option(help: ArgumentHelp("Another storage than Amazon S3 that speaks as it does.", valueName: "url"))
    var endpoint: String?
    @Flag(name: .customLong("path-style"), help: "Name buckets in the path and not in the host.")
    var usesPaths = false
    @Option(help: ArgumentHelp("The name that the store's program gives to it; none unless given.", valueName: "name"))
    var storage: String?
    @Option(help: ArgumentHelp("How long each exchange with the storage may take.", valueName: "seconds"))
    var timeout: Double = 30

    /// Nil where no storage was named.
    func access() throws(Failure) -> StorageAccess? {
        guard timeout > 0, timeout < 1e9 else { throw Failure(usage: "--timeout takes a number of seconds above 0") }
        return try StorageAccess(
            region: region, endpoint: endpoint, usesPaths: usesPaths, name: storage, timeout: .seconds(timeout),
            option: "--region")
    }

    /// The cloud's keys from the environment.
    ///
    /// - Parameter option: What wants them, for the error.
    static func credentials(for option: String) throws(Failure) -> Credentials.CloudCredentials {
        let environment = ProcessInfo.processInfo.environment
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        guard let key = value("AWS_ACCESS_KEY_ID"), let secret = value("AWS_SECRET_ACCESS_KEY") else {
            throw Failure(
                usage: "\(option) wants keys in the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        }
        return Credentials.CloudCredentials(
            accessKeyID: key, secretAccessKey: secret, sessionToken: value("AWS_SESSION_TOKEN"), expires: nil)
    }
}

/// The storage of a verb whose `--endpoint` and `--region` are a GraphQL server's.
struct ObjectOptions: ParsableArguments {
    @Option(
        name: .customLong("object-region"),
        help: ArgumentHelp(
            "Also carry out transfers, with the storage of this region. Its keys come from AWS_ACCESS_KEY_ID, "
                + "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.", valueName: "name"))
    var region: String?
    @Option(
        name: .customLong("object-endpoint"),
        help: ArgumentHelp("Another storage than Amazon S3 that speaks as it does.", valueName: "url"))
    var endpoint: String?
    @Option(
        name: .customLong("object-storage"),
        help: ArgumentHelp("The name that the store's program gives to it; none unless given.", valueName: "name"))
    var storage: String?
    @Flag(name: .customLong("path-style"), help: "Name buckets in the path and not in the host.")
    var usesPaths = false

    /// Nil where no storage was named.
    func access() throws(Failure) -> StorageAccess? {
        try StorageAccess(
            region: region, endpoint: endpoint, usesPaths: usesPaths, name: storage, timeout: .seconds(30),
            option: "--object-region")
    }
}

/// A storage, and the right to ask it.
struct StorageAccess: Sendable {
    var region: String
    /// The name that the store's program gives to it; nil: none.
    var name: String?
    var credentials: Credentials.CloudCredentials
    var options: S3Transport.Options
    var timeout: Duration

    /// Nil where no storage was named.
    ///
    /// - Parameter option: What names the region, for errors.
    init?(
        region: String?, endpoint: String?, usesPaths: Bool, name: String?, timeout: Duration, option: String
    ) throws(Failure) {
        guard let region else {
            guard endpoint == nil, !usesPaths, name == nil else {
                throw Failure(usage: "Name the storage's \(option) as well; a storage that has none takes any")
            }
            return nil
        }
        guard !region.isEmpty else { throw Failure(usage: "The region is empty") }
        options = S3Transport.Options()
        if usesPaths { options.addressing = .path }
        if let endpoint {
            options.endpoint = try URLArgument.http(
                endpoint, "The endpoint", remedy: "the storage's keys come from the environment.")
        }
        self.region = region
        self.timeout = timeout
        self.name = name
        credentials = try StorageOptions.credentials(for: option)
    }

    /// Runs `body` with a transport to it.
    func withTransport<Result>(_ body: (S3Transport) async throws -> Result) async throws -> Result {
        try await S3Transport.withTransport(
            region: region, credentials: { [credentials] _ in credentials }, options: options
        ) { try await body($0) }
    }
}
