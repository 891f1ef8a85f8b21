import Foundation
import LarderGraphQL

/// An object in a configuration file, which knows where it stands. Members that the caller does not ask for do not
/// matter.
struct ConfigurationSection {
    /// The file's name, for messages.
    let origin: String
    /// How to get here from the top, such as `AppSync.Default`; empty at the top.
    let path: String
    let members: [String: Value]

    init(_ value: Value, origin: String, path: String = "") throws(LarderError) {
        self.origin = origin
        self.path = path
        guard case .object(let members) = value else {
            throw Self.fault(origin, path, "this is \(value.kindInWords), and an object is expected")
        }
        self.members = members
    }

    /// The path of a member.
    func path(_ name: String) -> String {
        let isPlain =
            !name.isEmpty
            && name.utf8.allSatisfy {
                ($0 | 0x20) &- UInt8(ascii: "a") < 26 || $0 &- UInt8(ascii: "0") < 10 || $0 == UInt8(ascii: "_")
            }
        return isPlain ? (path.isEmpty ? name : "\(path).\(name)") : "\(path)[\(EnvironmentFault.shown(name))]"
    }

    /// The error for a fault in a member, or in this section.
    func fault(_ what: String, at name: String? = nil) -> LarderError {
        Self.fault(origin, name.map(path) ?? path, what)
    }

    private static func fault(_ origin: String, _ path: String, _ what: String) -> LarderError {
        LarderError(.environment, path.isEmpty ? "\(origin): \(what)" : "\(origin): \(path): \(what)")
    }

    /// Whether there is such a member, of whatever kind; null is none.
    func has(_ name: String) -> Bool { value(name) != nil }

    private func value(_ name: String) -> Value? {
        guard let value = members[name], value != .null else { return nil }
        return value
    }

    /// The names of the members that are not null, in ascending order.
    var names: [String] { members.filter { $0.value != .null }.keys.sorted() }

    /// A member that is an object; nil where there is none.
    func section(_ name: String) throws(LarderError) -> ConfigurationSection? {
        guard let value = value(name) else { return nil }
        return try ConfigurationSection(value, origin: origin, path: path(name))
    }

    /// The last of several sections, each in the one before; nil where one of them is not there.
    func section(_ names: String...) throws(LarderError) -> ConfigurationSection? {
        var section = self
        for name in names {
            guard let next = try section.section(name) else { return nil }
            section = next
        }
        return section
    }

    /// A member that is a string with something in it; nil where there is none.
    func string(_ name: String) throws(LarderError) -> String? {
        guard let value = value(name) else { return nil }
        guard case .string(let text) = value else {
            throw fault("this is \(value.kindInWords), and a string is expected", at: name)
        }
        guard !text.isEmpty else { throw fault("this is empty; say what it is, or leave it out", at: name) }
        return text
    }

    /// A member that must be there.
    func required(_ name: String) throws(LarderError) -> String {
        guard let text = try string(name) else { throw fault("this is missing, and a string is expected", at: name) }
        return text
    }

    /// A member that names how an API is authorized; nil where there is none.
    func authorization(_ name: String) throws(LarderError) -> BackendEnvironment.Authorization? {
        guard let text = try string(name) else { return nil }
        guard let authorization = BackendEnvironment.Authorization(rawValue: text) else {
            let known = BackendEnvironment.Authorization.allCases.map(\.rawValue).joined(separator: ", ")
            throw fault("this is \(EnvironmentFault.shown(text)), and is one of \(known)", at: name)
        }
        return authorization
    }

    /// A member that is a list of strings, or one string with commas between them; empty where there is none.
    func strings(_ name: String) throws(LarderError) -> [String] {
        guard case .list(let elements)? = value(name) else {
            return try string(name)?.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } ?? []
        }
        var texts: [String] = []
        for element in elements {
            guard case .string(let text) = element else {
                throw fault("this has \(element.kindInWords) in it, and strings are expected", at: name)
            }
            texts.append(text)
        }
        return texts
    }

    func boolean(_ name: String) throws(LarderError) -> Bool? {
        guard let value = value(name) else { return nil }
        guard case .boolean(let flag) = value else {
            throw fault("this is \(value.kindInWords), and true or false is expected", at: name)
        }
        return flag
    }

    /// A member that must be there and be a URL. The environment says what is wrong with the URL itself.
    func url(_ name: String) throws(LarderError) -> URL {
        let text = try required(name)
        // The text is not shown: it may hold a password.
        guard let url = URL(string: text, encodingInvalidCharacters: false) else {
            throw fault("this is no URL; write https://, a host and a path", at: name)
        }
        return url
    }

    /// The member that is meant where several may stand side by side: `Default`, as the tools that write them do, or
    /// the only one; nil where there is none.
    ///
    /// - Parameter remedy: What helps where there are several.
    func defaultSection(
        else remedy: String = "name the one that is meant Default"
    ) throws(LarderError) -> ConfigurationSection? {
        if let section = try section("Default") { return section }
        let names = names
        guard names.count <= 1 else {
            throw fault("there are several (\(EnvironmentFault.list(names))), and none is named Default; \(remedy)")
        }
        return try names.first.map { (name) throws(LarderError) in try section(name) } ?? nil
    }
}

extension Value {
    fileprivate var kindInWords: String {
        switch self {
        case .null: "null"
        case .boolean: "true or false"
        case .int, .float, .number: "a number"
        case .string: "a string"
        case .list: "a list"
        case .object: "an object"
        }
    }
}
