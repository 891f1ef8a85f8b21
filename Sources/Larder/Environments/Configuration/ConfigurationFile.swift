public import Foundation
package import LarderFiles
import LarderGraphQL
import LarderRecords

/// A file that says where backends are: Larder's own, or one that the tools of AWS write for programs.
///
/// ```swift
/// let file = try ConfigurationFile(contentsOf: url)
/// let staging = try file.environment(named: "staging")
/// ```
///
/// The file's content tells its kind. Members that have no meaning here are ignored. Only in an environment of Larder's
/// own file, which no other tool writes, is an unknown member an error, so that a misspelt `protected` does not leave
/// an environment unprotected.
public struct ConfigurationFile: Sendable {
    /// The tool that writes such files.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// `{"larder": 1, "environments": {…}}`
        case larder
        /// `awsconfiguration.json` of the AWS Mobile SDK and AppSync's.
        case awsConfiguration
        /// `amplifyconfiguration.json` of Amplify's first generation.
        case amplifyConfiguration
        /// `amplify_outputs.json` of Amplify's second generation.
        case amplifyOutputs
    }

    /// What kind of file it is.
    package let kind: Kind
    /// The file's name, as messages have it.
    package let origin: String
    let root: ConfigurationSection
    /// The secret of the program's registration in the user pool, which `root` does not have.
    let clientSecret: String?

    /// No configuration file is larger.
    static let maximumSize = 16 << 20

    /// Reads a file.
    ///
    /// - Throws: `.environment` where it cannot be read, is no regular file, has more than 16 MiB, is not JSON or none
    ///   of the kinds.
    public init(contentsOf file: URL) throws(LarderError) { try self.init(contentsOf: file, in: FileSystem()) }

    package init(contentsOf file: URL, in files: FileSystem) throws(LarderError) {
        try self.init(json: Self.bytes(of: file, files), origin: file.lastPathComponent)
    }

    /// Reads a file's content.
    ///
    /// - Parameters:
    ///   - json: The bytes of the file.
    ///   - origin: What messages call it.
    /// - Throws: `.environment`.
    package init(json: [UInt8], origin: String) throws(LarderError) {
        func fault(_ what: String, _ cause: (any Error)? = nil) -> LarderError {
            LarderError(.environment, "\(origin): \(what)", cause: cause)
        }
        guard json.count <= Self.maximumSize else { throw fault("this has more than 16 MiB: no configuration file") }
        // Some editors begin a file with a byte order mark, which JSON does not know.
        let text = json.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(json.dropFirst(3)) : json
        let value: Value
        do throws(JSONError) { value = try Value(json: text) } catch {
            let line = 1 + text.prefix(error.offset).count { $0 == UInt8(ascii: "\n") }
            throw fault("this is not the JSON of a configuration file: \(error), in line \(line)", error)
        }
        root = try ConfigurationSection(value.withoutClientSecrets, origin: origin)
        self.origin = origin
        let kinds = Kind.allCases.filter { [root] in $0.fits(root) }
        // What says that it is Larder's is; the rest may be there for others.
        guard let kind = kinds.first else {
            throw fault(
                "this is neither Larder's own configuration, {\"larder\": 1, \"environments\": {…}}, nor "
                    + "awsconfiguration.json, amplifyconfiguration.json or amplify_outputs.json; give one of these")
        }
        guard kind == .larder || kinds.count == 1 else {
            let names = kinds.map(\.fileName).joined(separator: " and ")
            throw fault("this has the content of \(names); leave one of them")
        }
        self.kind = kind
        var cognito: ConfigurationSection? = try ConfigurationSection(value, origin: origin)
        if kind == .amplifyConfiguration { cognito = try cognito?.section("auth", "plugins", "awsCognitoAuthPlugin") }
        clientSecret =
            kind == .larder
            ? nil : try cognito?.section("CognitoUserPool")?.defaultSection()?.string("AppClientSecret")
    }

    /// The environments that the file names; none where it describes one that has no name.
    public var environmentNames: [String] {
        guard kind == .larder else { return [] }
        return (try? root.section("environments"))??.names ?? []
    }

    /// The GraphQL APIs between which the file leaves the choice, by name.
    ///
    /// - Throws: `.environment` where what should hold them does not.
    public func apiNames() throws(LarderError) -> [String] {
        switch kind {
        case .larder, .amplifyOutputs: []
        case .awsConfiguration: try root.section("AppSync")?.names ?? []
        case .amplifyConfiguration: try graphQLAPIs().map(\.name)
        }
    }

    /// The environment that the file describes, which was validated.
    ///
    /// - Parameters:
    ///   - name: Of Larder's own file, which environment; may be nil where there is one. Files of other kinds describe
    ///     one without a name: the name to give it.
    ///   - api: Which GraphQL API, where the file has several.
    /// - Throws: `.environment`, with the place in the file.
    public func environment(named name: String?, api: String? = nil) throws(LarderError) -> BackendEnvironment {
        let environment: BackendEnvironment
        if kind == .larder {
            guard api == nil else {
                throw root.fault("Larder's own configuration has one API for each environment; name none")
            }
            environment = try ownEnvironment(named: name)
        } else {
            guard let name else { throw root.fault("this kind of file names no environment; say what to call it") }
            try BackendEnvironment.validate(name: name)
            environment =
                switch kind {
                case .larder, .awsConfiguration: try awsConfiguration(name, api)
                case .amplifyConfiguration: try amplifyConfiguration(name, api)
                case .amplifyOutputs: try amplifyOutputs(name, api)
                }
        }
        do throws(LarderError) { try environment.validate() } catch {
            throw LarderError(.environment, "\(origin): \(error.message)")
        }
        return environment
    }

    static func bytes(of file: URL, _ files: FileSystem) throws(LarderError) -> [UInt8] {
        func fault(_ what: String, _ cause: (any Error)? = nil) -> LarderError {
            LarderError(.environment, "\(file.path): \(what)", cause: cause)
        }
        guard file.isFileURL else {
            throw LarderError(.environment, "A configuration is read from a file, and not from another kind of URL")
        }
        do {
            let opened = try files.open(file.path)
            let status = try opened.status()
            guard status.kind == .file else {
                throw fault("this is no regular file; give the configuration file itself")
            }
            guard status.size <= maximumSize else { throw fault("this has more than 16 MiB: no configuration file") }
            return try opened.bytes(at: 0, count: Int(status.size))
        } catch let error as LarderError { throw error } catch let error as FileError {
            switch error.code {
            case .missing: throw fault("there is no such configuration file; check the path", error)
            case .permissionDenied:
                throw fault("this user may not read the configuration file; give access to it", error)
            default: throw fault("the configuration file cannot be read (\(error.reason)); check the volume", error)
            }
        } catch { throw fault("the configuration file cannot be read", error) }
    }
}

extension ConfigurationFile: CustomStringConvertible, CustomReflectable {
    /// The file's name and kind. Its content may hold secrets and is not shown.
    public var description: String { "\(origin) (\(kind.rawValue))" }

    public var customMirror: Mirror { Mirror(self, children: ["origin": origin, "kind": kind]) }
}

extension ConfigurationFile.Kind {
    /// What the tools call such a file.
    var fileName: String {
        switch self {
        case .larder: "larder's own configuration"
        case .awsConfiguration: "awsconfiguration.json"
        case .amplifyConfiguration: "amplifyconfiguration.json"
        case .amplifyOutputs: "amplify_outputs.json"
        }
    }

    fileprivate func fits(_ root: ConfigurationSection) -> Bool {
        switch self {
        case .larder: root.has("larder")
        case .awsConfiguration:
            ["AppSync", "CognitoUserPool", "CredentialsProvider", "S3TransferUtility"].contains(where: root.has)
        case .amplifyConfiguration:
            ["api", "auth", "storage"].contains {
                if case .object(let members)? = root.members[$0] { members["plugins"] != nil } else { false }
            }
        case .amplifyOutputs: root.has("version") && ["data", "auth", "storage"].contains(where: root.has)
        }
    }
}

extension Value {
    /// Without the secrets of clients, so that no message about a section has one.
    fileprivate var withoutClientSecrets: Value {
        switch self {
        case .object(let members):
            .object(members.filter { $0.key != "AppClientSecret" }.mapValues(\.withoutClientSecrets))
        case .list(let elements): .list(elements.map(\.withoutClientSecrets))
        default: self
        }
    }
}

extension BackendEnvironment {
    /// Reads an environment from a configuration file of any kind.
    ///
    /// - Parameters:
    ///   - file: Where the file is.
    ///   - name: Of Larder's own file, which environment; otherwise the name to give it.
    ///   - api: Which GraphQL API, where the file has several.
    /// - Throws: `.environment`, with the place in the file.
    public static func read(
        contentsOf file: URL, name: String? = nil, api: String? = nil
    ) throws(LarderError) -> BackendEnvironment {
        try ConfigurationFile(contentsOf: file).environment(named: name, api: api)
    }
}
