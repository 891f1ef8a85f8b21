import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations

/// Which environment the command line is to work with, and who says so.
struct DecidedEnvironment {
    /// In the order in which they decide.
    enum Origin {
        case flag
        case variable
        /// The file `.larder.json` of the folder, or of the nearest above it that has one.
        case project(String)
        case user(String)
        /// No other source names one: the store's current one.
        case store
    }

    static let variable = StoreOptions.environmentVariable

    var name: String
    var origin: Origin

    /// Nil where no source names one.
    ///
    /// - Throws: Where a name is none, or a file cannot be used.
    static func find(
        flag: String?, in folder: URL = URL(filePath: FileManager.default.currentDirectoryPath),
        variables: [String: String] = ProcessInfo.processInfo.environment
    ) throws -> DecidedEnvironment? {
        if let flag { return try DecidedEnvironment(checking: flag, .flag) }
        if let name = variables[variable], !name.isEmpty { return try DecidedEnvironment(checking: name, .variable) }
        var place = folder.standardizedFileURL
        while true {
            let file = place.appending(path: ".larder.json")
            if let name = try name(in: file) { return try DecidedEnvironment(checking: name, .project(file.path)) }
            let parent = place.deletingLastPathComponent().standardizedFileURL
            guard place.path != "/", parent.path != place.path else { break }
            place = parent
        }
        guard let file = userFile(variables), let name = try name(in: file) else { return nil }
        return try DecidedEnvironment(checking: name, .user(file.path))
    }

    private static func userFile(_ variables: [String: String]) -> URL? {
        if let folder = variables["XDG_CONFIG_HOME"], folder.hasPrefix("/") {
            return URL(filePath: folder).appending(path: "larder/config.json")
        }
        guard let home = variables["HOME"], home.hasPrefix("/") else { return nil }
        return URL(filePath: home).appending(path: ".config/larder/config.json")
    }

    /// The member `environment` of a file, which may define environments as well; nil where either is not there.
    private static func name(in file: URL) throws(Failure) -> String? {
        let input = InputFile(role: "the configuration", path: file.path)
        guard try input.status() != nil else { return nil }
        let bytes = try input.bytes()
        let object = try? JSONSerialization.jsonObject(with: Data(bytes))
        guard let members = object as? [String: Any] else {
            throw Failure(usage: "The configuration \(file.path): it holds no JSON object", code: .file)
        }
        guard let value = members["environment"] else { return nil }
        guard let name = value as? String else {
            throw Failure(usage: "The configuration \(file.path): environment is no text", code: .file)
        }
        return name
    }

    private init(checking name: String, _ origin: Origin) throws {
        try BackendEnvironment.validate(name: name)
        self.init(name: name, origin: origin)
    }

    init(name: String, origin: Origin) {
        self.name = name
        self.origin = origin
    }
}

extension DecidedEnvironment {
    /// What the environment variable says, where it says anything.
    static var saidByVariable: String? {
        ProcessInfo.processInfo.environment[variable].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// With what the store has of it.
    ///
    /// - Throws: A miss where the store does not know it.
    func required(_ database: OperationsDatabase) throws -> (decided: DecidedEnvironment, found: StoredEnvironment) {
        guard let found = try database.environments.find(name) else {
            throw OperationsError(.unknownEnvironment, "No environment is named \(name), which \(origin.text) says")
        }
        return (self, found)
    }
}

extension DecidedEnvironment.Origin {
    var json: JSONText {
        switch self {
        case .flag: .object([("kind", .string("flag"))])
        case .variable: .object([("kind", .string("variable")), ("name", .string(DecidedEnvironment.variable))])
        case .project(let path): .object([("kind", .string("project")), ("file", .string(path))])
        case .user(let path): .object([("kind", .string("user")), ("file", .string(path))])
        case .store: .object([("kind", .string("store"))])
        }
    }

    var text: String {
        switch self {
        case .flag: "the option --env"
        case .variable: "the variable \(DecidedEnvironment.variable)"
        case .project(let path), .user(let path): path
        case .store: "the store"
        }
    }
}

/// What verbs take that show an environment.
struct EnvironmentOption: ParsableArguments {
    @Option(
        name: .customLong("env"),
        help: ArgumentHelp(
            "The environment. Otherwise the variable LARDER_ENV, .larder.json here or above, the user's "
                + "larder/config.json, or the store's current one, in this order.",
            valueName: "name"))
    var name: String?

    /// - Throws: A miss where no source names one.
    func decided(_ database: OperationsDatabase) throws -> DecidedEnvironment {
        if let decided = try DecidedEnvironment.find(flag: name) { return decided }
        guard let name = try database.environments.current()?.partition?.environment else {
            throw Failure(.noEnvironment, .miss, "No environment is chosen; larder-migrate env use NAME chooses one")
        }
        return DecidedEnvironment(name: name, origin: .store)
    }
}

extension Failure.Code {
    static let noEnvironment = Failure.Code(rawValue: "command.noEnvironment")
    /// Another place decides on the environment than the one that was to be changed.
    static let decidedElsewhere = Failure.Code(rawValue: "command.decidedElsewhere")
}
