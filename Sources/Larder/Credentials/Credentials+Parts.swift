import Foundation

extension Credentials {
    /// The parts that are sealed, by kind; see the article on credentials for the bytes.
    var parts: [(kind: Part, bytes: [UInt8])] {
        var parts: [(Part, [UInt8])] = []
        if let userPool {
            var fields = FieldBytes()
            fields.add(1, userPool.idToken)
            fields.add(2, userPool.accessToken)
            fields.add(3, userPool.refreshToken)
            fields.add(4, userPool.deviceKey)
            fields.add(5, userPool.expires)
            fields.add(6, userPool.clientSecret)
            parts.append((.userPool, fields.bytes))
        }
        if let cloud {
            var fields = FieldBytes()
            fields.add(1, cloud.identityID)
            fields.add(2, cloud.accessKeyID)
            fields.add(3, cloud.secretAccessKey)
            fields.add(4, cloud.sessionToken)
            fields.add(5, cloud.expires)
            parts.append((.cloud, fields.bytes))
        }
        return parts
    }

    /// Takes a part over as it was sealed; false where it is none.
    mutating func take(_ kind: Part, _ bytes: [UInt8]) -> Bool {
        let last: UInt8 = kind == .userPool ? 6 : 5
        guard let fields = FieldBytes.fields(of: bytes), fields.keys.allSatisfy({ 1...last ~= $0 }) else {
            return false
        }
        func text(_ field: UInt8) -> String? { fields[field].map { String(decoding: $0, as: UTF8.self) } }
        var expires: Date?
        if let bytes = fields[5] {
            guard bytes.count == 8 else { return false }
            let bits = bytes.enumerated().reduce(UInt64(0)) { $0 | UInt64($1.element) << (8 * $1.offset) }
            expires = Date(timeIntervalSinceReferenceDate: Double(bitPattern: bits))
        }
        switch kind {
        case .userPool:
            guard let idToken = text(1), let accessToken = text(2) else { return false }
            userPool = UserPoolTokens(
                idToken: idToken, accessToken: accessToken, refreshToken: text(3), deviceKey: text(4),
                expires: expires, clientSecret: text(6))
        case .cloud:
            guard let accessKeyID = text(2), let secretAccessKey = text(3) else { return false }
            cloud = CloudCredentials(
                identityID: text(1), accessKeyID: accessKeyID, secretAccessKey: secretAccessKey,
                sessionToken: text(4), expires: expires)
        }
        return true
    }
}

/// Fields one after the other: number, length in four bytes with the lowest first, contents.
struct FieldBytes {
    private(set) var bytes: [UInt8] = []

    mutating func add(_ field: UInt8, _ text: String?) {
        if let text { add(field, Array(text.utf8)) }
    }

    mutating func add(_ field: UInt8, _ date: Date?) {
        guard let bits = date?.timeIntervalSinceReferenceDate.bitPattern else { return }
        add(field, (0..<8).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) })
    }

    mutating func add(_ field: UInt8, _ contents: some Collection<UInt8>) {
        bytes.append(field)
        let count = UInt32(clamping: contents.count)
        for shift in stride(from: 0, to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
        bytes += contents
    }

    /// Nil where the bytes are not fields, each of which is there once.
    static func fields(of bytes: [UInt8]) -> [UInt8: ArraySlice<UInt8>]? {
        var (fields, rest): ([UInt8: ArraySlice<UInt8>], ArraySlice<UInt8>) = ([:], bytes[...])
        while let field = rest.popFirst() {
            guard rest.count >= 4 else { return nil }
            let count = rest.prefix(4).enumerated().reduce(0) { $0 | Int($1.element) << (8 * $1.offset) }
            rest = rest.dropFirst(4)
            guard count <= rest.count, fields.updateValue(rest.prefix(count), forKey: field) == nil else { return nil }
            rest = rest.dropFirst(count)
        }
        return fields
    }
}
