public import Foundation
import LarderFiles
import LarderGraphQL

/// A project of `.graphqlconfig.yml`, by which tools find a program's schema and its operations.
///
/// ```swift
/// let project = try GraphQLProject.read(contentsOf: folder.appending(path: ".graphqlconfig.yml"))
/// let schema = try Schema(parsing: String(contentsOf: project.schema, encoding: .utf8))
/// for file in try project.documents() { … }
/// ```
///
/// Of YAML, what such files have is read: block mappings and lists, texts that are plain or quoted, lists of texts in
/// brackets, comments. Anything else is an error with its line. Members that mean nothing here are passed over.
public struct GraphQLProject: Sendable, Hashable {
    /// The project's name; nil where the file has one that has no name.
    public let name: String?
    /// The file with the schema.
    public let schema: URL
    /// Which files have operations, as patterns relative to `folder`: `*` is any text within a name, `?` one character,
    /// `**` any folders.
    public let includes: [String]
    /// Which of these do not.
    public let excludes: [String]
    /// The folder of the configuration file.
    public let folder: URL

    /// Reads a project from a file.
    ///
    /// - Parameters:
    ///   - file: Of the name `.graphqlconfig.yml`, mostly.
    ///   - name: Which project, where the file has several.
    /// - Throws: `.environment`, with the line or the place in the file.
    public static func read(contentsOf file: URL, named name: String? = nil) throws(LarderError) -> GraphQLProject {
        let bytes = try ConfigurationFile.bytes(of: file, FileSystem())
        return try GraphQLProject(
            bytes, origin: file.lastPathComponent, folder: file.deletingLastPathComponent(), named: name)
    }

    init(_ bytes: [UInt8], origin: String, folder: URL, named name: String?) throws(LarderError) {
        func fault(_ what: String, _ cause: (any Error)? = nil) -> LarderError {
            LarderError(.environment, "\(origin): \(what)", cause: cause)
        }
        guard bytes.count <= 1 << 20 else { throw fault("this has more than 1 MiB: no GraphQL configuration") }
        guard var text = String(validating: bytes, as: UTF8.self) else {
            throw fault("this is not UTF-8; write it anew")
        }
        if text.hasPrefix("\u{FEFF}") { text.removeFirst() }
        let value: Value
        if text.first(where: { !$0.isWhitespace }) == "{" {
            do throws(JSONError) { value = try Value(json: Array(text.utf8)) } catch {
                throw fault("this begins as JSON, and is none: \(error)", error)
            }
        } else {
            do throws(YAMLReader.Fault) { value = try YAMLReader.read(text) } catch {
                throw fault("line \(error.line): \(error.text)", error)
            }
        }
        let root = try ConfigurationSection(value, origin: origin)
        let section: ConfigurationSection
        if let projects = try root.section("projects"), !projects.names.isEmpty {
            let names = projects.names
            guard let chosen = name ?? (names.count == 1 ? names.first : nil) else {
                throw projects.fault("there are several (\(EnvironmentFault.list(names))); say which one is meant")
            }
            guard let found = try projects.section(chosen) else {
                throw projects.fault(
                    "there is no \(EnvironmentFault.shown(chosen)); there is "
                        + EnvironmentFault.list(names, areQuoted: true))
            }
            (section, self.name) = (found, chosen)
        } else {
            guard name == nil else { throw fault("the file has one project, and it has no name; name none") }
            (section, self.name) = (root, nil)
        }
        schema = URL(filePath: try section.required("schemaPath"), relativeTo: folder).absoluteURL
        includes = try section.patterns("includes")
        excludes = try section.patterns("excludes")
        self.folder = folder
    }

    /// The files below `folder` that are included and not excluded, by path; without `includes`, those that end in
    /// `.graphql`. Links to folders are not followed. O(files below the folder).
    ///
    /// - Throws: `.environment` where the folder cannot be read.
    public func documents() throws(LarderError) -> [URL] {
        guard let found = FileManager.default.enumerator(atPath: folder.path) else {
            throw LarderError(.environment, "\(folder.path) cannot be read; check that it is a folder")
        }
        let included = (includes.isEmpty ? ["**/*.graphql"] : includes).map(PathPattern.init)
        let excluded = excludes.map(PathPattern.init)
        var paths: [String] = []
        while let path = found.nextObject() as? String {
            let parts = path.split(separator: "/")
            guard included.contains(where: { $0.matches(parts) }), !excluded.contains(where: { $0.matches(parts) }),
                found.fileAttributes?[.type] as? FileAttributeType == .typeRegular
            else { continue }
            paths.append(path)
        }
        return paths.sorted().map { folder.appending(path: $0) }
    }
}

/// A pattern of paths: `*` and `?` within a name, `**` for any folders.
private struct PathPattern {
    private let parts: [[Character]]

    init(_ text: String) { parts = text.split(separator: "/").filter { $0 != "." }.map(Array.init) }

    func matches(_ path: [Substring]) -> Bool {
        Self.match(parts, path.map(Array.init), isStar: { $0 == ["*", "*"] }) { part, name in
            Self.match(part, name, isStar: { $0 == "*" }) { $0 == "?" || $0 == $1 }
        }
    }

    /// Goes back to the last star alone, so that it takes at most the product of both lengths.
    private static func match<Part, Piece>(
        _ pattern: [Part], _ text: [Piece], isStar: (Part) -> Bool, fits: (Part, Piece) -> Bool
    ) -> Bool {
        var (part, piece, star, mark) = (0, 0, -1, 0)
        while piece < text.count {
            if part < pattern.count, isStar(pattern[part]) {
                (star, mark) = (part, piece)
                part += 1
            } else if part < pattern.count, fits(pattern[part], text[piece]) {
                part += 1
                piece += 1
            } else if star >= 0 {
                mark += 1
                (part, piece) = (star + 1, mark)
            } else {
                return false
            }
        }
        return pattern[part...].allSatisfy(isStar)
    }
}

extension ConfigurationSection {
    /// A member that is a list of patterns, or one pattern; empty where there is none.
    fileprivate func patterns(_ name: String) throws(LarderError) -> [String] {
        let patterns: [String]
        if case .string(let pattern)? = members[name] { patterns = [pattern] } else { patterns = try strings(name) }
        for pattern in patterns {
            guard !pattern.isEmpty, !pattern.hasPrefix("/"), !pattern.split(separator: "/").contains("..") else {
                throw fault("\(EnvironmentFault.shown(pattern)) is no path below the file's folder", at: name)
            }
            guard !pattern.contains(where: { "{}[]!\\".contains($0) }) else {
                throw fault(
                    "\(EnvironmentFault.shown(pattern)) has more than *, ** and ?, which is not read here; write a "
                        + "pattern for each", at: name)
            }
        }
        return patterns
    }
}
