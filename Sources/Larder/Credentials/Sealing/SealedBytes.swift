package import Crypto
import Foundation

/// The format of what is sealed: a header in clear, the random nonce, the text in cipher, the tag. AES-256-GCM.
///
/// The header is part of what is authenticated, and so is what the bytes belong to, which is not stored with them: what
/// is moved elsewhere cannot be opened there.
package enum SealedBytes {
    package enum Kind: String {
        case credential = "Lcrd"
        case partitionKey = "Lpky"
    }

    static let version: UInt8 = 1
    private static let aesGCM256: UInt8 = 1
    /// Of each of the parts that something belongs to the header has the first bytes of a hash, which tell what is
    /// amiss.
    private static let tagSize = 8
    private static let nonceSize = 12
    private static let authenticationSize = 16

    /// What something belongs to: a partition, and for a credential the fingerprint of identity.
    package struct Owner: Sendable {
        package let kind: Kind
        fileprivate let parts: [String]
        fileprivate let header: [UInt8]

        package static func partitionKey(of partition: String) -> Owner { Owner(.partitionKey, [partition]) }

        package static func credential(of partition: String, identity: String) -> Owner {
            Owner(.credential, [partition, identity])
        }

        private init(_ kind: Kind, _ parts: [String]) {
            self.kind = kind
            self.parts = parts
            header =
                Array(kind.rawValue.utf8) + [version, aesGCM256]
                + parts.flatMap { SHA256.hash(data: Data("larder \(kind.rawValue) \($0)".utf8)).prefix(tagSize) }
        }

        /// - Parameter name: What distinguishes several things of one owner.
        fileprivate func authenticated(_ name: String) -> [UInt8] {
            var fields = FieldBytes()
            fields.add(0, header)
            for part in parts { fields.add(1, part) }
            fields.add(2, name)
            return fields.bytes
        }
    }

    package static func seal(_ bytes: [UInt8], of owner: Owner, name: String = "", with key: SymmetricKey) throws
        -> [UInt8]
    {
        let box = try AES.GCM.seal(bytes, using: key, authenticating: owner.authenticated(name))
        return owner.header + Array(box.nonce) + Array(box.ciphertext) + Array(box.tag)
    }

    /// What can be told without a key: nil where nothing is amiss so far.
    static func fault(of sealed: [UInt8], owner: Owner) -> QuarantineReason? {
        guard sealed.starts(with: owner.kind.rawValue.utf8), sealed.count > 5 else { return .damaged }
        guard sealed[4] <= version else { return .newerFormat }
        guard sealed.count >= owner.header.count + nonceSize + authenticationSize, sealed[..<6] == owner.header[..<6]
        else { return .damaged }
        func tag(_ index: Int) -> Range<Int> { 6 + index * tagSize..<6 + (index + 1) * tagSize }
        // The environment is compared first: where the partition differs too, the environment is why no caller here can
        // use it.
        if owner.kind == .credential, sealed[tag(1)] != owner.header[tag(1)] { return .otherEnvironment }
        if sealed[tag(0)] != owner.header[tag(0)] { return .otherPartition }
        return nil
    }

    package static func open(
        _ sealed: [UInt8], of owner: Owner, name: String = "", with key: SymmetricKey
    ) throws(SealError) -> [UInt8] {
        if let fault = fault(of: sealed, owner: owner) { throw SealError(reason: fault) }
        let start = owner.header.count
        do {
            let box = try AES.GCM.SealedBox(
                nonce: AES.GCM.Nonce(data: sealed[start..<start + nonceSize]),
                ciphertext: sealed[(start + nonceSize)..<(sealed.count - authenticationSize)],
                tag: sealed[(sealed.count - authenticationSize)...])
            return Array(try AES.GCM.open(box, using: key, authenticating: owner.authenticated(name)))
        } catch { throw SealError(reason: .damaged) }
    }
}
