import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The secret of a user pool's client", .timeLimit(.minutes(10)))
struct ClientSecretTests {
    private func credentials(_ secret: String?) -> Credentials {
        Credentials(
            userPool: .init(idToken: "a", accessToken: "b", expires: nil, clientSecret: secret), cloud: nil)
    }

    @Test(
        "It is sealed with the tokens, whatever bytes it has, and no file of the store has it",
        arguments: ["very-secret", "\"\\\n\u{0}\u{7F}", "秘密🔑é", String(repeating: "s", count: 70_000)])
    func sealed(secret: String) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(credentials(secret), within: soon)
            #expect(try await bench.session().storedCredentials(within: soon) == .present(credentials(secret)))
            let files = try FileManager.default.subpathsOfDirectory(atPath: bench.folder.path)
            #expect(!files.isEmpty)
            for file in files {
                let bytes = FileManager.default.contents(atPath: bench.folder.appending(path: file).path) ?? Data()
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(file)")
            }
        }
    }

    @Test("Nothing that prints tokens prints it")
    func printing() {
        var dumped = ""
        dump(credentials("very-secret"), to: &dumped)
        #expect(!(dumped + "\(credentials("very-secret"))").contains("very-secret"))
    }

    @Test("Tokens without one are sealed as the same bytes as before there were any")
    func absent() {
        let parts = credentials(nil).parts
        #expect(parts.map(\.kind) == [.userPool])
        #expect(parts[0].bytes == [1, 1, 0, 0, 0, 0x61, 2, 1, 0, 0, 0, 0x62])
    }

    @Test("A refresh that does not repeat it keeps it")
    func kept() {
        #expect(credentials(nil).completed(by: credentials("s")) == credentials("s"))
        #expect(credentials("new").completed(by: credentials("s")) == credentials("new"))
    }
}
