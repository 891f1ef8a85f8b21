import Foundation
import LarderTestSupport
import Testing

/// The public declarations of a module that is built, as the compiler tells them.
private struct PublicAPI {
    struct Symbol {
        /// `Store.open(at:schema:options:file:line:)`.
        var path: String
        var declaration: String
        var isDocumented: Bool
        /// Whether it is a type that is in no other.
        var isType: Bool
    }

    static let modules = [
        "LarderGraphQL", "LarderRecords", "Larder", "LarderHTTP", "LarderURLSession", "LarderAWS", "LarderTesting",
    ]
    #if os(Linux)
    static let isAvailable = succeeds("sh", "-c", "command -v swift-symbolgraph-extract") && !moduleMaps.isEmpty
    #else
    static let isAvailable = false
    #endif
    static let requirement = "needs Linux, the compiler's swift-symbolgraph-extract, and modules that SwiftPM built"

    private static let build = BuiltProgram.file("").resolvingSymlinksInPath()

    /// Of modules in C, that SwiftPM made or that packages bring.
    private static let moduleMaps: [String] = {
        let (files, checkouts) = (FileManager.default, packageRoot.appending(path: ".build/checkouts"))
        let made = ((try? files.contentsOfDirectory(atPath: build.path)) ?? []).map {
            build.appending(path: "\($0)/module.modulemap").path
        }
        let packages = ((try? files.contentsOfDirectory(atPath: checkouts.path)) ?? []).map {
            checkouts.appending(path: "\($0)/Sources")
        }
        let brought = packages.flatMap { sources in
            ((try? files.contentsOfDirectory(atPath: sources.path)) ?? []).flatMap { name in
                ["include/", ""].map { sources.appending(path: "\(name)/\($0)module.modulemap").path }
            }
        }
        let own = ["Sources/CLMDB", "Tools/CAllocations/include"].map {
            packageRoot.appending(path: "\($0)/module.modulemap").path
        }
        return (made + brought + own).filter { files.fileExists(atPath: $0) }
    }()

    static func symbols(of module: String) async throws -> [Symbol] {
        try await withTemporaryFolder { folder in
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments =
                [
                    "swift-symbolgraph-extract", "-module-name", module, "-target", "\(machine)-unknown-linux-gnu",
                    "-I", build.appending(path: "Modules").path, "-output-dir", folder.path,
                    "-minimum-access-level", "public", "-skip-synthesized-members",
                ] + moduleMaps.flatMap { ["-Xcc", "-fmodule-map-file=\($0)"] }
            process.standardError = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            try process.start()
            await process.ended()
            // Extensions of other modules' types are in files of their own.
            let graphs = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
                $0.hasSuffix(".symbols.json")
            }
            return try graphs.flatMap { graph in
                let data = try Data(contentsOf: folder.appending(path: graph))
                return try JSONDecoder().decode(Graph.self, from: data).symbols.map(\.symbol)
            }.sorted { ($0.path, $0.declaration) < ($1.path, $1.declaration) }
        }
    }

    private static var machine: String {
        #if arch(arm64)
        "aarch64"
        #else
        "x86_64"
        #endif
    }

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Fragment: Decodable { var spelling: String }
            struct Comment: Decodable {}
            var pathComponents: [String]
            var declarationFragments: [Fragment]?
            var docComment: Comment?
            var kind: Kind

            struct Kind: Decodable { var identifier: String }

            var symbol: PublicAPI.Symbol {
                let declaration = (declarationFragments ?? []).map(\.spelling).joined()
                return .init(
                    path: pathComponents.joined(separator: "."),
                    declaration: declaration.split(whereSeparator: \.isWhitespace).joined(separator: " "),
                    isDocumented: docComment != nil,
                    isType: pathComponents.count == 1
                        && ["swift.struct", "swift.class", "swift.enum", "swift.protocol", "swift.typealias"]
                            .contains(kind.identifier)
                )
            }
        }
        var symbols: [Symbol]
    }
}

@Suite(
    "The public API", .enabled(if: PublicAPI.isAvailable, "\(PublicAPI.requirement)"), .timeLimit(.minutes(10)))
struct PublicAPITests {
    @Test(
        "Each public declaration is in the list of Tests/PublicAPI, and documented; LARDER_PUBLIC_API=write renews it",
        arguments: PublicAPI.modules)
    func list(module: String) async throws {
        let symbols = try await PublicAPI.symbols(of: module)
        #expect(!symbols.isEmpty)
        #expect(symbols.filter { !$0.isDocumented }.map(\.path) == [])
        try Self.compare(symbols.map { "\($0.path): \($0.declaration)" }, module)
    }

    private static func compare(_ lines: [String], _ name: String) throws {
        let file = packageRoot.appending(path: "Tests/PublicAPI/\(name).txt")
        if ProcessInfo.processInfo.environment["LARDER_PUBLIC_API"] == "write" {
            try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: file)
        }
        let listed = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        let change = lines.difference(from: listed)
        #expect(change.insertions.map(\.line) == [], "public now, and not in the list")
        #expect(change.removals.map(\.line) == [], "in the list, and not public any more")
    }
}

extension PublicAPITests {
    @Test(
        "Each public type of a documented module is in a topic of its catalogue",
        arguments: [
            (
                "Larder",
                ["Larder", "LarderGraphQL", "LarderRecords", "LarderHTTP", "LarderURLSession", "LarderTesting"]
            ),
            ("LarderAWS", ["LarderAWS"]),
        ])
    func topics(catalogue: String, modules: [String]) async throws {
        let page = packageRoot.appending(path: "Sources/\(catalogue)/\(catalogue).docc/\(catalogue).md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let topics = try #require(text.components(separatedBy: "## Topics").last)
        // Types of other modules cannot be linked to.
        let named = Set(topics.matches(of: /`([A-Za-z0-9]+)`/).map { String($0.1) })
        var types: Set<String> = []
        for module in modules {
            for symbol in try await PublicAPI.symbols(of: module) where symbol.isType { types.insert(symbol.path) }
        }
        #expect(types.subtracting(named).sorted() == [])
        #expect(named.subtracting(types).sorted() == [])
    }
}

/// Public declarations in parts of the sources that Linux does not compile, as they are written there.
private enum ElsewhereAPI {
    private static let conditions = [
        "canImport(SwiftUI)", "canImport(Security)", "canImport(Network)", "canImport(Darwin)", "canImport(UIKit)",
        "os(iOS)", "os(macOS)",
    ]

    /// One for each declaration, with the folder of its module.
    static func declarations() throws -> [(text: String, isDocumented: Bool)] {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        let names = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
        return try names.filter { $0.hasSuffix(".swift") }.sorted().flatMap { name in
            let text = try String(contentsOf: sources.appending(path: name), encoding: .utf8)
            let module = name.split(separator: "/")[0]
            return declarations(in: text).map { ("\(module): \($0.text)", $0.isDocumented) }
        }
    }

    private static func declarations(in text: String) -> [(text: String, isDocumented: Bool)] {
        var (found, branches): ([(text: String, isDocumented: Bool)], [String]) = ([], [])
        var (isDocumented, open): (Bool, String?) = (false, nil)
        for line in text.split(separator: "\n").map({ $0.trimmingCharacters(in: .whitespaces) }) {
            if let begun = open {
                open = begun + (begun.hasSuffix("(") || line.hasPrefix(")") ? "" : " ") + line
            } else if line.hasPrefix("#if") {
                branches.append(line)
            } else if line.hasPrefix("#else") {
                branches[branches.count - 1] = line
            } else if line.hasPrefix("#endif") {
                branches.removeLast()
            } else if line.hasPrefix("///") {
                isDocumented = true
            } else if line.firstMatch(of: /^(@\w+ )*public (?!import)/) != nil,
                branches.contains(where: { branch in conditions.contains { branch.contains($0) } })
            {
                open = line
            } else if !line.hasPrefix("@") {
                isDocumented = false
            }
            guard let whole = open, whole.count(where: { $0 == "(" }) == whole.count(where: { $0 == ")" }) else {
                continue
            }
            let end = whole.firstIndex(of: "{") ?? whole.endIndex
            found.append((whole[..<end].trimmingCharacters(in: .whitespaces), isDocumented))
            (isDocumented, open) = (false, nil)
        }
        return found
    }
}

extension PublicAPITests {
    @Test("What is public on other systems alone is listed too, and documented")
    func elsewhere() throws {
        let found = try ElsewhereAPI.declarations()
        #expect(found.contains { $0.text.contains("SignInView") })
        #expect(found.filter { !$0.isDocumented }.map(\.text) == [])
        try Self.compare(found.map(\.text), "AppleSystems")
    }
}

extension CollectionDifference.Change where ChangeElement == String {
    fileprivate var line: String {
        switch self {
        case .insert(_, let line, _), .remove(_, let line, _): line
        }
    }
}
