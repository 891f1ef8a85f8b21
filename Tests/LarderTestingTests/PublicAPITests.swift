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
            try process.run()
            process.waitUntilExit()
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
        let lines = symbols.map { "\($0.path): \($0.declaration)" }
        let file = packageRoot.appending(path: "Tests/PublicAPI/\(module).txt")
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

extension CollectionDifference.Change where ChangeElement == String {
    fileprivate var line: String {
        switch self {
        case .insert(_, let line, _), .remove(_, let line, _): line
        }
    }
}
