package import BigInt
package import Crypto

#if canImport(FoundationEssentials)
package import FoundationEssentials
#else
package import Foundation
#endif

/// The client's side of the Secure Remote Password protocol (RFC 2945, RFC 5054), with Cognito's choices: the 3072-bit
/// prime of RFC 3526, 2 as generator, SHA-256, and an HKDF of the shared secret.
///
/// The powers take the same steps whatever their exponents are, but how long a step takes depends on the numbers in it:
/// the package's arithmetic is not written for secrets. Another process of this machine that can time this one exactly
/// learns something of the random number, which is used once, and of the password's hash. One on the network sees one
/// answer for each sign-in, with the server's own time in it.
package struct SecureRemotePassword: Sendable {
    /// Nothing that is secret may be had from what the server sent.
    package struct Refused: Error {}

    private static let primeText = """
        FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD\
        EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED\
        EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F\
        83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA18217C32905E462E36CE3B\
        E39E772C180E86039B2783A2EC07A28FB5C55DF06F4C52C9DE2BCBF6955817183995497CEA956AE515D2261898FA0510\
        15728E5A8AAAC42DAD33170D04507A33A85521ABDF1CBA64ECFB850458DBEF0A8AEA71575D060C7DB3970F85A6E1E4C7\
        ABF5AE8CDB0933D71E8C94E04A25619DCEE3D2261AD2EE6BF12FFA06D98A0864D87602733EC86A64521F2B18177B200C\
        BBE117577A615D6C770988C0BAD946E208E24FA074E5AB3143DB5BFCE0FD108E4B82D120A93AD2CAFFFFFFFFFFFFFFFF
        """
    /// Of no use where the text above is no number, which the tests rule out.
    package static let prime = BigUInt(primeText, radix: 16) ?? 0
    package static let generator = BigUInt(2)
    static let multiplier = number(SHA256.hash(data: padded(prime) + padded(generator)))

    /// The client's random number, to be used once.
    private let secret: BigUInt
    /// The client's public value.
    let publicValue: BigUInt

    /// - Parameter secret: At least 32 random bytes.
    package init(secret: some Collection<UInt8>) {
        self.secret = BigUInt(Data(secret))
        publicValue = Self.powerOfTwo(self.secret)
    }

    /// The public value as it is sent.
    package var publicText: String { String(publicValue, radix: 16) }

    /// Sixteen bytes that only one who knows the password shares with the server.
    ///
    /// - Parameters:
    ///   - pool: The pool's name, or a device's group.
    ///   - user: The user's id for this protocol, or a device's key.
    ///   - salt: In hexadecimal digits, as the server sends it: without leading zeros.
    ///   - serverValue: The server's public value, in hexadecimal digits.
    /// - Throws: Where the server's value would make the secret known to anybody (RFC 5054, section 2.5.4).
    package func key(
        pool: String, user: String, password: String, salt: String, serverValue: String
    ) throws(Refused) -> SymmetricKey {
        let prime = Self.prime
        guard let salt = BigUInt(salt, radix: 16), let theirs = BigUInt(serverValue, radix: 16),
            theirs.bitWidth <= 4_096, salt.bitWidth <= 4_096, theirs % prime != 0, publicValue % prime != 0
        else { throw Refused() }
        let u = Self.scrambler(publicValue, theirs)
        guard u != 0 else { throw Refused() }
        let x = Self.passwordHash(pool: pool, user: user, password: password, salt: salt)
        let verifier = Self.multiplier * Self.powerOfTwo(x) % prime
        let base = (theirs % prime + prime - verifier) % prime
        let shared = Self.power(base, secret + u * x)
        return HKDF<SHA256>.deriveKey(
            inputKeyMaterial: SymmetricKey(data: Self.padded(shared)), salt: Self.padded(u),
            info: Data("Caldera Derived Key".utf8), outputByteCount: 16)
    }

    /// What proves to the server that the password is known: base64.
    package static func signature(key: SymmetricKey, pool: String, user: String, block: Data, timestamp: String)
        -> String
    {
        let text = Data(pool.utf8) + Data(user.utf8) + block + Data(timestamp.utf8)
        return Data(HMAC<SHA256>.authenticationCode(for: text, using: key)).base64EncodedString()
    }

    /// What a server keeps of a device's password, with its salt.
    static func verifier(
        group: String, device: String, password: String, salt: [UInt8]
    ) -> (salt: Data, verifier: Data) {
        let number = BigUInt(Data(salt))
        let hash = passwordHash(pool: group, user: device, password: password, salt: number)
        return (padded(number), padded(powerOfTwo(hash)))
    }

    /// What both sides make of the public values, the client's first.
    static func scrambler(_ ours: BigUInt, _ theirs: BigUInt) -> BigUInt {
        number(SHA256.hash(data: padded(ours) + padded(theirs)))
    }

    static func passwordHash(pool: String, user: String, password: String, salt: BigUInt) -> BigUInt {
        let inner = SHA256.hash(data: Data("\(pool)\(user):\(password)".utf8))
        return number(SHA256.hash(data: padded(salt) + Data(inner)))
    }

    /// The shortest bytes, the highest first, with a zero in front where they would read as a negative number.
    static func padded(_ number: BigUInt) -> Data {
        let bytes = number.serialize()
        guard let first = bytes.first else { return Data([0]) }
        return first & 0x80 == 0 ? bytes : Data([0]) + bytes
    }

    /// The power of the generator, modulo the prime: to double is to shift, so that the squares alone cost something.
    static func powerOfTwo(_ exponent: BigUInt) -> BigUInt {
        power(exponent) { result, digit in result <<= digit }
    }

    /// The power of any number, modulo the prime.
    static func power(_ base: BigUInt, _ exponent: BigUInt) -> BigUInt {
        var powers: [BigUInt] = [1]
        for number in 1..<(1 << digitBits) { powers.append(powers[number - 1] * base % prime) }
        return power(exponent) { result, digit in result *= powers[digit] }
    }

    /// Takes an exponent by digits of five bits, the highest first, where the package's own power takes it bit by bit.
    ///
    /// - Parameter multiply: Multiplies by the base's power of the digit.
    private static func power(_ exponent: BigUInt, _ multiply: (inout BigUInt, Int) -> Void) -> BigUInt {
        var result = BigUInt(1)
        for number in (0..<(exponent.bitWidth + digitBits - 1) / digitBits).reversed() {
            for _ in 0..<digitBits { result = result * result % prime }
            let digit = (exponent >> (number * digitBits)).words.first ?? 0
            multiply(&result, Int(digit % (1 << digitBits)))
            result %= prime
        }
        return result
    }

    private static let digitBits = 5

    private static func number(_ digest: some Sequence<UInt8>) -> BigUInt { BigUInt(Data(digest)) }
}
