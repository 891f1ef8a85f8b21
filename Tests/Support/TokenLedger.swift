public import Foundation

/// A server's list of the refresh tokens that it has issued, in a file that any number of processes use. Each works
/// once; the last line is the one that works. What is refused is written down as well.
public struct TokenLedger: Sendable {
    /// Where it is.
    public let file: URL

    public init(_ file: URL) { self.file = file }

    /// All lines: `issued N` and `refused TOKEN`.
    public func lines() throws -> [String] {
        try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
    }

    /// Issues the first token.
    public func begin() throws -> String {
        try Data("issued 0\n".utf8).write(to: file)
        return "refresh-0"
    }

    /// The next token for the last one that was issued; nil for any other.
    public func refresh(_ token: String) throws -> String? {
        let handle = try FileHandle(forUpdating: file)
        defer { try? handle.close() }
        while flock(handle.fileDescriptor, LOCK_EX) != 0 {}
        let text = String(decoding: try handle.readToEnd() ?? Data(), as: UTF8.self)
        let issued = text.split(separator: "\n").filter { $0.hasPrefix("issued ") }.count
        let isLast = token == "refresh-\(issued - 1)"
        try handle.write(contentsOf: Data((isLast ? "issued \(issued)\n" : "refused \(token)\n").utf8))
        return isLast ? "refresh-\(issued)" : nil
    }
}
