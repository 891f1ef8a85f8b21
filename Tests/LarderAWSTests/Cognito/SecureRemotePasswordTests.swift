import BigInt
import Crypto
import Foundation
import LarderFiles
import Testing

@testable import LarderAWS

/// What pycognito and the server of the tests agree on.
@Suite("Proofs of a password", .timeLimit(.minutes(10)))
struct SecureRemotePasswordTests {
    private static let timestamp = "Tue Feb 3 04:05:06 UTC 2026"
    private static let pool = "AbC123xyz"

    /// A sign-in of the set: every number in it follows from its own.
    private func signature(_ number: Int) throws -> String {
        func hash(_ letter: String) -> [UInt8] { Array(SHA256.hash(data: Data("\(letter)\(number)".utf8))) }
        let user = "u\(number)"
        let password = "p\(number)"
        let salt = BigUInt(Data(hash("s").prefix(16)))
        let prime = SecureRemotePassword.prime
        let x = SecureRemotePassword.passwordHash(pool: Self.pool, user: user, password: password, salt: salt)
        let two = SecureRemotePassword.generator
        let theirs =
            (SecureRemotePassword.multiplier * two.power(x, modulus: prime)
                + two.power(BigUInt(Data(hash("b"))), modulus: prime)) % prime
        let key = try SecureRemotePassword(secret: hash("a")).key(
            pool: Self.pool, user: user, password: password, salt: String(salt, radix: 16),
            serverValue: String(theirs, radix: 16))
        return SecureRemotePassword.signature(
            key: key, pool: Self.pool, user: user, block: Data(hash("k")), timestamp: Self.timestamp)
    }

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
        #expect(try signature(0) == "DTVTWoPBayEsBkgkfZzepZ3MLXxQKRLXqroKhEcnR6I=")
    }

    @Test(
        "All 256 signatures of the set are pycognito's",
        .enabled(if: ProcessInfo.processInfo.environment["LARDER_ALL_VECTORS"] != nil, "takes minutes unoptimized"))
    func all() async throws {
        let signatures = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for number in 0..<256 { group.addTask { (number, try signature(number)) } }
            return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        var all = Data()
        for number in 0..<256 { all += try #require(signatures[number].flatMap { Data(base64Encoded: $0) }) }
        #expect(
            hexadecimal(SHA256.hash(data: all))
                == "b0eb5f600902232c9008a95b07425f242aea6c2e4f779db32664a75dd6e63bf0")
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
        for value in ["0", "00", prime, twice, "", "-1", "xyz", String(repeating: "f", count: 5_000)] {
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
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 1_770_091_506)) == Self.timestamp)
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 0)) == "Thu Jan 1 00:00:00 UTC 1970")
        #expect(CognitoTime.text(Date(timeIntervalSince1970: 1_709_251_199)) == "Thu Feb 29 23:59:59 UTC 2024")
    }
}
