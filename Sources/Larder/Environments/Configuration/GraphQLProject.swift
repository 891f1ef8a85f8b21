package import Foundation
import LarderFiles
import LarderGraphQL

/// A project of `.graphqlconfig.yml`, by which tools find a program's schema.
///
/// Of YAML, what such files have is read: block mappings and lists, texts that are plain or quoted, lists of texts in
/// brackets, comments. Anything else is an error with its line. Members that mean nothing here are passed over.
package struct GraphQLProject: Sendable, Hashable {
    /// The project's name; nil where the file has one that has no name.
    package let name: String?
    /// The file with the schema.
    package let schema: URL

    /// Reads a project from a file.
    ///
    /// - Parameters:
    ///   - file: Of the name `.graphqlconfig.yml`, mostly.
    ///   - name: Which project, where the file has several.
    /// - Throws: `.environment`, with the line or the place in the file.
    package static func read(contentsOf file: URL, named name: String? = nil) throws(LarderError) -> GraphQLProject {
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
    }
}
