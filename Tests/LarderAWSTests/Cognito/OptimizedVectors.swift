import Foundation
import LarderTestSupport
import Testing

/// A program that signs the first vectors, optimized: debug builds optimize no package, and take long for its numbers.
///
/// It consists of the library's own source of proofs, of `SignatureVectors` and of the package of big numbers, compiled
/// for this run. Its hashes are those of the debug build.
struct OptimizedVectors {
    static let requirement = "needs Linux, swiftc, and the dependencies' sources beside what was built"

    private static let built = BuiltProgram.file("larder-crash").deletingLastPathComponent()

    /// The package of big numbers, above what was built; nil where it is elsewhere.
    private static let numbers: URL? = {
        var folder = built
        while folder.pathComponents.count > 1 {
            folder = folder.deletingLastPathComponent()
            let sources = folder.appending(path: "checkouts/BigInt/Sources")
            if FileManager.default.fileExists(atPath: sources.path) { return sources }
        }
        return nil
    }()

    #if os(Linux)
    static let isUsable = numbers != nil && FileManager.default.fileExists(atPath: crypto[0].path)
    #else
    static let isUsable = false
    #endif

    private static let crypto = [
        "Crypto", "CryptoBoringWrapper", "CCryptoBoringSSL", "CCryptoBoringSSLShims", "CXKCP", "CXKCPShims",
    ].map { built.appending(path: "\($0).build") }

    /// Compiles it in a folder, and runs it.
    ///
    /// - Returns: The first `count` signatures.
    static func signatures(_ count: Int, in folder: URL) async throws -> [String] {
        let main = folder.appending(path: "vectors.swift")
        try Data(
            """
            @main struct Vectors {
                static func signatures() async -> [Int: String] {
                    await withTaskGroup(of: (Int, String?).self) { group in
                        for number in 0..<\(count) {
                            group.addTask { (number, try? SignatureVectors.signature(number)) }
                        }
                        return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
                    }
                }
                static func main() async {
                    let signatures = await signatures()
                    for number in 0..<\(count) { print(signatures[number] ?? "none") }
                }
            }
            """.utf8
        ).write(to: main)
        let object = folder.appending(path: "BigInt.o").path
        let compiler = ["swiftc", "-O", "-wmo", "-parse-as-library"]
        var arguments = compiler + ["-suppress-warnings", "-module-name", "BigInt"]
        arguments += ["-emit-module", "-emit-module-path", folder.appending(path: "BigInt.swiftmodule").path]
        arguments += ["-c", "-o", object]
        arguments += files(of: try #require(numbers), "swift")
        try await run(arguments)
        let program = folder.appending(path: "vectors").path
        arguments = compiler + ["-package-name", "vectors", "-D", "VECTORS_ALONE", "-I", folder.path]
        arguments += ["-swift-version", "6", "-enable-upcoming-feature", "InternalImportsByDefault"]
        arguments += ["-I", built.appending(path: "Modules").path, "-o", program, main.path]
        arguments.append(inPackage("Sources/LarderAWS/Cognito/Protocol/SecureRemotePassword.swift"))
        arguments.append(inPackage("Tests/LarderAWSTests/Cognito/SignatureVectors.swift"))
        arguments += [object, "-lstdc++"]
        for folder in crypto { arguments += files(of: folder, "o") }
        try await run(arguments)
        return try await run([program]).split(separator: "\n").map(String.init)
    }

    private static func inPackage(_ path: String) -> String { packageRoot.appending(path: path).path }

    private static func files(of folder: URL, _ kind: String) -> [String] {
        let paths = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return paths.filter { $0.hasSuffix(".\(kind)") }.sorted().map { folder.appending(path: $0).path }
    }

    @discardableResult
    private static func run(_ arguments: [String]) async throws -> String {
        let file = FileManager.default.temporaryDirectory.appending(path: "larder-vectors-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data().write(to: file)
        let output = try FileHandle(forWritingTo: file)
        let child = Process()
        child.executableURL = URL(filePath: "/usr/bin/env")
        child.arguments = arguments
        (child.standardInput, child.standardOutput, child.standardError) = (FileHandle.nullDevice, output, output)
        try child.start()
        await child.ended()
        try output.close()
        let said = try String(contentsOf: file, encoding: .utf8)
        try #require(child.terminationStatus == 0, "\(arguments.prefix(4)): \(said)")
        return said
    }
}
