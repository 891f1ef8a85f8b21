import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderOperations
import LarderTestSupport

/// Has a user's tokens refreshed by Cognito, once a file is there, beside other processes that do the same.
struct CognitoRefresh {
    let folder: URL
    let endpoint: URL
    let pool: BackendEnvironment.UserPool
    /// Whether it says that Cognito has answered, and then does nothing any more.
    let isStopping: Bool

    func run(whenThereIs signal: URL) async throws {
        let database = try OperationsDatabase(folder: folder)
        try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
            var options = CognitoUserPool.Options()
            options.endpoint = endpoint
            let session = Session(
                database: database, partition: "main", identity: "identity", keys: FileKeyProvider(besides: folder),
                provider: Provider(
                    pool: CognitoUserPool(pool, client: client, options: options), isStopping: isStopping),
                locksFolder: folder.appending(path: "locks"))
            let old = try await session.userPoolTokens(within: .seconds(300))
            say("ready")
            while !FileManager.default.fileExists(atPath: signal.path) { try await Task.sleep(for: .milliseconds(1)) }
            do throws(LarderError) {
                let new = try await session.userPoolTokens(within: .seconds(300), refused: old)
                say("\(session.state.rawValue) \(new.refreshToken ?? "")")
            } catch { say("\(session.state.rawValue) \(error.code.rawValue)") }
        }
        try database.close()
    }

    private struct Provider: IdentityProvider {
        let pool: CognitoUserPool
        let isStopping: Bool

        var parts: Set<Credentials.Part> { [.userPool] }

        func refresh(
            _ part: Credentials.Part, of credentials: Credentials, within time: Duration
        ) async throws(IdentityError) -> Credentials {
            guard let tokens = credentials.userPool else { throw IdentityError(.unusable, "There are no tokens") }
            let new: Credentials.UserPoolTokens
            do throws(CognitoError) { new = try await pool.refresh(tokens, within: time) } catch {
                throw IdentityError(
                    error.code == .signInAgain ? .userPoolRefused : .unreachable, "\(error)", cause: error)
            }
            if isStopping {
                say("answered")
                while true { sleep(3600) }
            }
            return Credentials(userPool: new)
        }

        func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {}
    }
}
