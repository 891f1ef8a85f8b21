import Foundation

extension BackendEnvironment {
    /// Whether it can be one: every part says something, and none contradicts another.
    ///
    /// - Throws: `.environment`, with the first fault and what would help. No message has a secret.
    public func validate() throws(LarderError) {
        try Self.validate(name: name)
        func fault(_ what: String) -> LarderError {
            LarderError(.environment, "Environment \(name): \(what)")
        }
        do throws(EnvironmentFault) {
            try api.validate()
            try userPool?.validate()
            try identityPool?.validate()
            try bucket?.validate()
            try hostedSignIn?.validate()
            if let apiKey { try EnvironmentFault.check(apiKey, "the API key") }
            if let clientSecret { try EnvironmentFault.check(clientSecret, "the client's secret") }
        } catch { throw fault(error.text) }
        if case .environment(let old) = predecessor {
            do throws(EnvironmentFault) { try EnvironmentFault.check(name: old) } catch {
                throw fault("what it succeeds is no environment's name: \(error.text)")
            }
        }
    }

    /// Whether people can call an environment so: ASCII letters and digits, `-`, `_` and `.`, of which the first is a
    /// letter or a digit and no two dots stand together; at most 64.
    ///
    /// - Throws: `.environment`.
    package static func validate(name: String) throws(LarderError) {
        do throws(EnvironmentFault) { try EnvironmentFault.check(name: name) } catch {
            throw LarderError(.environment, error.text)
        }
    }
}

/// A fault in a part of an environment, before it is known whose.
struct EnvironmentFault: Error {
    var text: String

    init(_ text: String) { self.text = text }

    static func check(name: String) throws(EnvironmentFault) {
        let remedy = "use ASCII letters, digits, -, _ and . after a first letter or digit, 64 at most"
        guard !name.isEmpty else { throw EnvironmentFault("an environment's name is empty; \(remedy)") }
        guard name.utf8.count <= 64 else {
            throw EnvironmentFault("an environment's name is longer than 64 bytes: \(shown(name)); \(remedy)")
        }
        let bytes = Array(name.utf8)
        guard bytes.allSatisfy({ isLetterOrDigit($0) || "-_.".utf8.contains($0) }), isLetterOrDigit(bytes[0]) else {
            throw EnvironmentFault("an environment cannot be named \(shown(name)); \(remedy)")
        }
        guard !name.contains("..") else {
            throw EnvironmentFault("an environment cannot be named \(shown(name)): two dots name a folder; \(remedy)")
        }
    }

    /// A text that names something: not empty, and of nothing that cannot be seen.
    static func check(_ text: String, _ what: String) throws(EnvironmentFault) {
        guard !text.isEmpty else { throw EnvironmentFault("\(what) is empty; say what it is, or leave it out") }
        guard text.unicodeScalars.allSatisfy({ !isInvisible($0) }) else {
            throw EnvironmentFault("\(what) has white space or a control character in it; take it out")
        }
    }

    /// A name as it may stand in a message: short, and quoted, with what cannot be seen written out.
    static func shown(_ text: String) -> String { "\"\(visible(text))\"" }

    /// Names as they may stand in a message: the first of them, where there are many.
    ///
    /// - Parameter areQuoted: Whether each is quoted.
    static func list(_ names: [String], areQuoted: Bool = false) -> String {
        let shown = names.prefix(20).map { areQuoted ? Self.shown($0) : visible($0) }.joined(separator: ", ")
        return names.count > 20 ? "\(shown) and \(names.count - 20) more" : shown
    }

    private static func visible(_ text: String) -> String {
        let start = text.unicodeScalars.prefix(80).map { $0.escaped(asASCII: false) }.joined()
        return text.unicodeScalars.count > 80 ? start + "…" : start
    }

    private static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .spaceSeparator: true
        default: false
        }
    }

    static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte &- UInt8(ascii: "0") < 10
    }

    /// The cloud's regions are named so: `eu-west-1`, `us-gov-east-1`.
    static func isRegion(_ text: some StringProtocol) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return parts.count >= 3 && parts.last.map { !$0.isEmpty && $0.utf8.allSatisfy { $0 &- 0x30 < 10 } } == true
            && parts.dropLast().allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { $0 &- UInt8(ascii: "a") < 26 } }
    }

    /// An id that begins with its region must be of the region that is said beside it.
    static func check(_ id: String, until separator: Character, isIn region: String, _ what: String)
        throws(EnvironmentFault)
    {
        guard let end = id.firstIndex(of: separator), isRegion(id[..<end]), id[..<end] != region else { return }
        throw EnvironmentFault("\(what) \(shown(id)) is not in the region \(shown(region)); one of the two is wrong")
    }
}

extension BackendEnvironment.API {
    func validate() throws(EnvironmentFault) {
        guard !url.namesUser else {
            throw EnvironmentFault("the API's URL has a user or a password in it; take them out")
        }
        let text = EnvironmentFault.shown(URLText.hidingUser(ofURL: url.absoluteString))
        guard let scheme = url.scheme?.lowercased(), scheme == "https" || scheme == "http" else {
            throw EnvironmentFault("the API's URL \(text) is neither https nor http")
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw EnvironmentFault("the API's URL \(text) names no host")
        }
        guard url.fragment == nil else {
            throw EnvironmentFault("the API's URL \(text) has a fragment, which no server sees; take it out")
        }
        guard let region else { return }
        try EnvironmentFault.check(region, "the API's region")
        // ID.appsync-api.REGION.amazonaws.com
        let labels = host.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count >= 4, labels[1] == "appsync-api", EnvironmentFault.isRegion(labels[2]),
            labels[2] != region
        else { return }
        throw EnvironmentFault(
            "the API's URL \(text) is not in the region \(EnvironmentFault.shown(region)); one of the two is wrong")
    }
}

extension BackendEnvironment.UserPool {
    func validate() throws(EnvironmentFault) {
        try EnvironmentFault.check(id, "the user pool's id")
        try EnvironmentFault.check(clientID, "the user pool's client id")
        try EnvironmentFault.check(region, "the user pool's region")
        try EnvironmentFault.check(id, until: "_", isIn: region, "the user pool")
    }
}

extension BackendEnvironment.IdentityPool {
    func validate() throws(EnvironmentFault) {
        try EnvironmentFault.check(id, "the identity pool's id")
        try EnvironmentFault.check(region, "the identity pool's region")
        try EnvironmentFault.check(id, until: ":", isIn: region, "the identity pool")
    }
}

extension BackendEnvironment.HostedSignIn {
    func validate() throws(EnvironmentFault) {
        try EnvironmentFault.check(domain, "the domain of the sign-in pages")
        let isHost = domain.utf8.allSatisfy { EnvironmentFault.isLetterOrDigit($0) || "-.:".utf8.contains($0) }
        guard isHost else {
            throw EnvironmentFault(
                "the domain of the sign-in pages \(EnvironmentFault.shown(domain)) is no host; write it without https://"
            )
        }
        for scope in scopes { try EnvironmentFault.check(scope, "a scope of the sign-in pages") }
        for redirect in signInRedirects + signOutRedirects {
            try EnvironmentFault.check(redirect, "where the sign-in pages lead")
            guard let url = URL(string: redirect, encodingInvalidCharacters: false), url.scheme != nil else {
                throw EnvironmentFault(
                    "where the sign-in pages lead is no URL: \(EnvironmentFault.shown(redirect)); write it with its scheme"
                )
            }
        }
    }
}

extension BackendEnvironment.Bucket {
    func validate() throws(EnvironmentFault) {
        try EnvironmentFault.check(name, "the bucket's name")
        try EnvironmentFault.check(region, "the bucket's region")
        guard !name.contains("/") else {
            throw EnvironmentFault(
                "the bucket's name \(EnvironmentFault.shown(name)) has a / in it; name the bucket alone")
        }
    }
}
