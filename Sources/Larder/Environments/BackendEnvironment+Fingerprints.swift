import Crypto
import Foundation
import LarderFiles
import LarderOperations

extension BackendEnvironment {
    /// What credentials, caches and files are bound to.
    var fingerprints: Fingerprints {
        Fingerprints(
            identity: Self.fingerprint(
                "identity",
                [
                    userPool?.id, userPool?.clientID, userPool?.region, identityPool?.id, identityPool?.region,
                ]),
            // The region says how requests are signed, and not where they go.
            data: Self.fingerprint("data", [api.url.absoluteString]),
            storage: Self.fingerprint("storage", [bucket?.name, bucket?.region]))
    }

    /// SHA-256, in hexadecimal. Each part is preceded by its length, and by 0 where it is absent, so that no two lists
    /// of parts are the same bytes.
    private static func fingerprint(_ kind: String, _ parts: [String?]) -> String {
        var hash = SHA256()
        hash.update(data: Data("larder environment 1 \(kind)\n".utf8))
        for part in parts {
            guard let part else {
                hash.update(data: [0])
                continue
            }
            hash.update(data: Data("\u{1}\(part.utf8.count):\(part)".utf8))
        }
        return hexadecimal(hash.finalize())
    }
}
