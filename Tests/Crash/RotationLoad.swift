import Foundation
import Larder
import LarderOperations

/// Changes the program's key again and again, and signs in between; says what was acknowledged.
struct RotationLoad {
    let folder: URL

    /// - Parameter step: Where to be killed; nowhere if it is no step's name.
    func run(killedAfter step: String) async throws {
        let database = try OperationsDatabase(folder: folder)
        let keys = FileKeyProvider(besides: folder)
        let locks = folder.appending(path: "locks")
        var rotation = KeyRotation(database: database, provider: keys, locks: locks, label: "rotating")
        rotation.reached = { if $0.rawValue == step { kill(getpid(), SIGKILL) } }
        for number in 0..<3 {
            _ = try await database.watchers.put("w", in: "p\(number)", document: "{ a }", now: .now)
        }
        for number in 0... {
            let session = Session(
                database: database, partition: "p\(number % 3)", identity: "identity", keys: keys, provider: nil,
                locksFolder: locks)
            try await session.signIn(
                Credentials(
                    userPool: .init(idToken: "\(number)", accessToken: "", expires: nil)),
                within: .seconds(300))
            say("p\(number % 3) \(number)")
            // All of them have credentials when the key is changed first.
            guard number >= 2 else { continue }
            _ = try await rotation.run(within: .seconds(300))
            say("rotated")
        }
    }
}
