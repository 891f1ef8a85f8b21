public import Foundation

/// Keys in environment variables, for servers and containers whose platform hands secrets to them.
///
/// Each key is the base64 of 32 bytes: `openssl rand -base64 32` makes one. To change it, give the new key in the first
/// variable, the old one in the second, and rotate; once that is done, the second may go.
public struct EnvironmentKeyProvider: KeyProvider {
    /// Has the key in use.
    package let variable: String
    /// Has older keys, with spaces between them.
    package let previousVariable: String
    private let environment: @Sendable () -> [String: String]

    /// - Parameters:
    ///   - variable: The name of the variable that has the key.
    ///   - previousVariable: The name of the variable that has the keys of before, with spaces between them.
    ///   - environment: The process's unless a test gives another.
    public init(
        variable: String = "LARDER_KEY", previousVariable: String = "LARDER_PREVIOUS_KEYS",
        environment: @escaping @Sendable () -> [String: String] = { ProcessInfo.processInfo.environment }
    ) {
        self.variable = variable
        self.previousVariable = previousVariable
        self.environment = environment
    }

    /// The name of the variable that has the key.
    public var description: String { "the environment variable \(variable)" }

    /// - Throws: `.missing`, `.invalid`.
    public func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        let environment = environment()
        guard let text = environment[variable], !text.isEmpty else {
            throw KeyError(
                .missing, "\(variable) is not set; set it to the base64 of 32 bytes: openssl rand -base64 32")
        }
        var previous: [MasterKey] = []
        for word in (environment[previousVariable] ?? "").split(whereSeparator: \.isWhitespace) {
            previous.append(try Self.key(String(word), previousVariable))
        }
        return MasterKeys(current: try Self.key(text, variable), previous: previous)
    }

    /// Makes none: the variable must be set.
    ///
    /// - Throws: As `keys`.
    public func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        try await keys(within: time)
    }

    /// - Throws: `.cannotRotate`.
    public func addKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        throw KeyError(
            .cannotRotate,
            "Set \(variable) to a new key and \(previousVariable) to the one that it has now, and rotate "
                + "again")
    }

    /// Does nothing: the user who set the variables takes the older keys out of them.
    public func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {}

    private static func key(_ text: String, _ variable: String) throws(KeyError) -> MasterKey {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard let bytes = Data(base64Encoded: text), bytes.count == MasterKey.byteCount else {
            throw KeyError(
                .invalid, "\(variable) is not the base64 of 32 bytes; make a key with: openssl rand -base64 32")
        }
        return try MasterKey(bytes: Array(bytes))
    }
}
