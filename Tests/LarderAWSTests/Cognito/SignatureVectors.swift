import BigInt
import Crypto
import Foundation

// Compiled by itself as well; see `OptimizedVectors`.
#if !VECTORS_ALONE
@testable import LarderAWS
#endif

/// Sign-ins on whose signatures pycognito and the server of the tests agree; this was checked for the first 256. All
/// values of a sign-in follow from its number.
enum SignatureVectors {
    static let timestamp = "Tue Feb 3 04:05:06 UTC 2026"
    private static let pool = "AbC123xyz"

    static func signature(_ number: Int) throws -> String {
        func hash(_ letter: String) -> [UInt8] { Array(SHA256.hash(data: Data("\(letter)\(number)".utf8))) }
        let (user, password) = ("u\(number)", "p\(number)")
        let salt = BigUInt(Data(hash("s").prefix(16)))
        let x = SecureRemotePassword.passwordHash(pool: pool, user: user, password: password, salt: salt)
        let theirs =
            (SecureRemotePassword.multiplier * SecureRemotePassword.powerOfTwo(x)
                + SecureRemotePassword.powerOfTwo(BigUInt(Data(hash("b"))))) % SecureRemotePassword.prime
        let key = try SecureRemotePassword(secret: hash("a")).key(
            pool: pool, user: user, password: password, salt: String(salt, radix: 16),
            serverValue: String(theirs, radix: 16))
        return SecureRemotePassword.signature(
            key: key, pool: pool, user: user, block: Data(hash("k")), timestamp: timestamp)
    }
}
