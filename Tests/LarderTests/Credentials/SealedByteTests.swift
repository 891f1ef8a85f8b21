import Crypto
import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

/// Reads what a store keeps of credentials by the article alone, as a later version has to.
@Suite("The bytes that the article on credentials describes", .timeLimit(.minutes(10)))
struct SealedByteTests {
    /// A field: its number in a byte, its length in four with the lowest first, and its contents.
    private func field(_ number: UInt8, _ contents: some Sequence<UInt8>) -> [UInt8] {
        let contents = Array(contents)
        return [number] + (0..<4).map { UInt8(truncatingIfNeeded: contents.count >> (8 * $0)) } + contents
    }

    /// Opens sealed bytes with a header of so many bytes.
    private func open(
        _ sealed: [UInt8], _ magic: String, of owners: [String], kind: String, with key: SymmetricKey
    ) throws -> [UInt8] {
        let header =
            Array(magic.utf8) + [1, 1]
            + owners.flatMap { Array(SHA256.hash(data: Data("larder \(magic) \($0)".utf8)).prefix(8)) }
        #expect(Array(sealed.prefix(header.count)) == header)
        let known = field(0, header) + owners.flatMap { field(1, $0.utf8) } + field(2, kind.utf8)
        let box = try AES.GCM.SealedBox(combined: sealed.dropFirst(header.count))
        return Array(try AES.GCM.open(box, using: key, authenticating: known))
    }

    @Test("The program's key opens the partition's, and that the credentials, whose fields stand where they are to")
    func opened() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            let end = Date(timeIntervalSinceReferenceDate: 1_234_567.5)
            try await store.partition().session.signIn(
                Credentials(
                    userPool: .init(idToken: "é", accessToken: "a", refreshToken: nil, expires: end),
                    cloud: .init(
                        identityID: "r:1", accessKeyID: "k", secretAccessKey: "s", sessionToken: "t", expires: nil)),
                within: soon)
            try store.close()

            let text = try String(contentsOf: URL(filePath: place.path + ".key"), encoding: .utf8)
            let lines = text.split(separator: "\n").map(String.init)
            #expect(lines.first == "larder key file 1" && lines.count == 4)
            let words = try #require(lines.first { $0.hasPrefix("key ") }).split(separator: " ").map(String.init)
            let bytes = try #require(Data(base64Encoded: words[2]))
            func hexadecimal(_ data: Data) -> String {
                SHA256.hash(data: data).map { String(format: "%02x", $0) }.joined()
            }
            #expect(hexadecimal(Data("larder key id 1\n".utf8) + bytes).hasPrefix(words[1]) && words[1].count == 16)
            let covered = try #require(text.range(of: "sum "))
            #expect(lines.last == "sum " + hexadecimal(Data(text[..<covered.lowerBound].utf8)))

            let database = try OperationsDatabase(folder: place)
            let key = try #require(try database.credentials.keys().first)
            #expect(key.sealedWith == words[1] && key.sealed.count == 74)
            let opened = try open(key.sealed, "Lpky", of: ["main"], kind: "", with: SymmetricKey(data: bytes))
            var found: [String: [UInt8]] = [:]
            for credential in try database.credentials.snapshot(of: "main").credentials {
                found[credential.kind] = try open(
                    credential.sealed, "Lcrd", of: ["main", credential.identity], kind: credential.kind,
                    with: SymmetricKey(data: opened))
            }
            try database.close()
            let bits = end.timeIntervalSinceReferenceDate.bitPattern
            let time = (0..<8).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) }
            #expect(found["userPool"] == field(1, "é".utf8) + field(2, "a".utf8) + field(5, time))
            #expect(
                found["cloud"] == field(1, "r:1".utf8) + field(2, "k".utf8) + field(3, "s".utf8) + field(4, "t".utf8))
        }
    }
}
