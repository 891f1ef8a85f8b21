import BigInt
import Crypto
import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderAWS

/// What pycognito and the server of the tests agree on.
@Suite("Proofs of a password", .timeLimit(.minutes(10)))
struct SecureRemotePasswordTests {
    @Test("The prime and the multiplier are Cognito's")
    func constants() {
        let prime = SecureRemotePassword.prime
        #expect(prime.bitWidth == 3_072)
        #expect(
            hexadecimal(SHA256.hash(data: prime.serialize()))
                == "48cf8b092fbce4359d9871abf74f98e25b6163379eaa15cd9087e800c6d1c55c")
        #expect(
            String(SecureRemotePassword.multiplier, radix: 16)
                == "538282c4354742d7cbbde2359fcf67f9f5b3a6b08791e5011b43b8a5b66d9ee6")
    }

    @Test("The first signature of the set is pycognito's")
    func first() throws {
        #expect(try SignatureVectors.signature(0) == "DTVTWoPBayEsBkgkfZzepZ3MLXxQKRLXqroKhEcnR6I=")
    }

    @Test(
        "The first 64 signatures of the set are pycognito's",
        .enabled(if: OptimizedVectors.isUsable, "\(OptimizedVectors.requirement)"))
    func several() async throws {
        let signatures = try await withTemporaryFolder { try await OptimizedVectors.signatures(64, in: $0) }
        #expect(signatures.count == 64)
        let all = try signatures.reduce(into: Data()) { $0 += try #require(Data(base64Encoded: $1)) }
        #expect(
            hexadecimal(SHA256.hash(data: all))
                == "1bc3be1bd6ad3b91de7d4fb03facc7c14cf88822139b64feb419c7462dc3ba1d")
    }

    @Test("What is made of both public values is amplify-swift's", arguments: 0..<3)
    func scramblers(number: Int) throws {
        let (ours, theirs, both) = AmplifyVectors.scramblers[number]
        let made = SecureRemotePassword.scrambler(
            try #require(BigUInt(ours, radix: 16)), try #require(BigUInt(theirs, radix: 16)))
        #expect(String(made, radix: 16) == both)
    }

    @Test("The key that both sides share is amplify-swift's, also with a salt of 31 digits", arguments: 0..<2)
    func keys(number: Int) throws {
        let exchange = AmplifyVectors.exchanges[number]
        let secret = try #require(BigUInt(exchange.secret, radix: 16)).serialize()
        let client = SecureRemotePassword(secret: secret)
        #expect(client.publicText == exchange.publicValue)
        let key = try client.key(
            pool: "", user: exchange.user, password: AmplifyVectors.password, salt: exchange.salt,
            serverValue: exchange.serverValue)
        #expect(key.withUnsafeBytes { hexadecimal($0) } == exchange.key)
        // The key of a server that knows the secret itself.
        let shared = SecureRemotePassword.padded(try #require(BigUInt(exchange.shared, radix: 16)))
        let u = SecureRemotePassword.scrambler(
            client.publicValue, try #require(BigUInt(exchange.serverValue, radix: 16)))
        let theirs = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: shared), salt: SecureRemotePassword.padded(u),
            info: Data("Caldera Derived Key".utf8), outputByteCount: 16)
        #expect(key == theirs)
    }

    @Test("A power is that of the package of numbers, for exponents of no, one and several digits")
    func powers() throws {
        let prime = SecureRemotePassword.prime
        let base = try #require(BigUInt(AmplifyVectors.exchanges[0].shared, radix: 16))
        let exponents = [0, 1, 2, 30, 31, 32, 33, 1_023, 1_024, 1_025, 1 << 40, .max].map { BigUInt($0 as Int) }
        for exponent in exponents {
            #expect(SecureRemotePassword.power(base, exponent) == base.power(exponent, modulus: prime))
            #expect(
                SecureRemotePassword.powerOfTwo(exponent)
                    == SecureRemotePassword.generator.power(exponent, modulus: prime))
        }
        #expect(SecureRemotePassword.power(0, 5) == 0)
        #expect(SecureRemotePassword.power(prime - 1, 2) == 1)
    }

    @Test(
        "Numbers are padded where their first bit is set, and not otherwise",
        arguments: [("0", "00"), ("7f", "7f"), ("80", "0080"), ("ff", "00ff"), ("100", "0100"), ("8000", "008000")])
    func padding(_ number: String, _ bytes: String) throws {
        #expect(hexadecimal(SecureRemotePassword.padded(try #require(BigUInt(number, radix: 16)))) == bytes)
    }

    @Test("A server's value of 0 modulo the prime, or none, is refused")
    func illegal() {
        let client = SecureRemotePassword(secret: Array(repeating: 7, count: 32))
        let prime = String(SecureRemotePassword.prime, radix: 16)
        let twice = String(SecureRemotePassword.prime * 2, radix: 16)
        let values = [
            "0", "00", prime, twice, "", "-1", "xyz", String(repeating: "f", count: 5_000), AmplifyVectors.refused,
        ]
        for value in values {
            #expect(throws: SecureRemotePassword.Refused.self, "\(value.prefix(20))") {
                try client.key(pool: "p", user: "u", password: "w", salt: "ab", serverValue: value)
            }
        }
        #expect(throws: SecureRemotePassword.Refused.self) {
            try client.key(pool: "p", user: "u", password: "w", salt: "no", serverValue: "5")
        }
    }

    @Test("A proof's time is English, in UTC, and its day has no zero in front")
    func time() {
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 1_770_091_506)) == SignatureVectors.timestamp)
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 0)) == "Thu Jan 1 00:00:00 UTC 1970")
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 1_709_251_199)) == "Thu Feb 29 23:59:59 UTC 2024")
    }
}
