import Crypto
public import Larder

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A sign-in that the user carries out on the pool's own pages: made by `CognitoUserPool.beginHostedSignIn`, and needed
/// to finish it. It has a secret; a program that may be ended meanwhile keeps it as it keeps credentials.
public struct HostedSignIn: Sendable, Hashable, Codable {
    /// The page to show, in a browser of the system's.
    public let url: URL
    /// Where the page leads in the end.
    public let redirect: String
    /// What the answer must repeat, so that no other page can send one.
    let state: String
    /// What proves that the program that began it also finishes it (RFC 7636).
    let verifier: String
}

extension HostedSignIn: CustomStringConvertible, CustomReflectable {
    /// Nothing secret.
    public var description: String { "sign-in on \(url.host() ?? "a page")" }
    /// Has nothing secret.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension CognitoUserPool {
    /// The page on which the pool signs a user in by itself. The program shows it, and waits until the system hands it
    /// the URL to which the page has led: `finishHostedSignIn` takes that. The library listens on no port.
    ///
    /// - Parameters:
    ///   - pages: The pool's own pages, as the environment names them.
    ///   - redirect: Where the page leads in the end; nil for the first of the pages' redirects.
    ///   - provider: The identity provider that is to sign the user in, by the pool's name for it; nil where the user
    ///     chooses.
    ///   - language: In which language the page is to be, such as `ja`; nil for the pool's choice.
    /// - Throws: `.configuration` where the pages lead nowhere.
    public func beginHostedSignIn(
        on pages: BackendEnvironment.HostedSignIn, redirect: String? = nil, provider: String? = nil,
        language: String? = nil
    ) throws(CognitoError) -> HostedSignIn {
        guard let redirect = redirect ?? pages.signInRedirects.first else {
            throw CognitoError(.configuration, "The sign-in pages lead nowhere; name a redirect.")
        }
        let (state, verifier) = (Data(options.random(24)).base64ForURLs, Data(options.random(32)).base64ForURLs)
        let challenge = Data(SHA256.hash(data: Data(verifier.utf8))).base64ForURLs
        var query: [(String, String)] = [
            ("response_type", "code"), ("client_id", pool.clientID), ("redirect_uri", redirect), ("state", state),
            ("code_challenge", challenge), ("code_challenge_method", "S256"),
        ]
        if !pages.scopes.isEmpty { query.append(("scope", pages.scopes.joined(separator: " "))) }
        if let provider { query.append(("identity_provider", provider)) }
        if let language { query.append(("lang", language)) }
        return HostedSignIn(
            url: try pages.url("oauth2/authorize", query), redirect: redirect, state: state, verifier: verifier)
    }

    /// The tokens of a user who has signed in on the pool's pages.
    ///
    /// - Parameters:
    ///   - attempt: What `beginHostedSignIn` has returned.
    ///   - pages: The pool's own pages, as the environment names them.
    ///   - callback: The URL to which the page has led.
    ///   - time: How long the call may take.
    /// - Throws: `.invalidInput` where the URL answers another sign-in; `.cancelled` where the user gave up there;
    ///   `.signInAgain` where the code has ended or was used; `.rejected` with the pages' own name for an error;
    ///   otherwise as `signIn`.
    public func finishHostedSignIn(
        _ attempt: HostedSignIn, on pages: BackendEnvironment.HostedSignIn, callback: URL,
        within time: Duration? = nil
    ) async throws(CognitoError) -> Credentials.UserPoolTokens {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        var given: [String: String] = [:]
        // The query has a form's encoding, in which a plus sign is a space (RFC 6749, section 4.1.2).
        for item in URLComponents(url: callback, resolvingAgainstBaseURL: false)?.percentEncodedQueryItems ?? [] {
            given[item.name] = item.value?.replacing("+", with: " ").removingPercentEncoding
        }
        guard callback.absoluteString.hasPrefix(attempt.redirect), given["state"] == attempt.state else {
            throw CognitoError(.invalidInput, "The URL is no answer to this sign-in; begin another.")
        }
        if let error = given["error"] {
            let said = String((given["error_description"] ?? error).prefix(500))
            throw CognitoError(
                error == "access_denied" ? .cancelled : .rejected, said, serverCode: String(error.prefix(100)))
        }
        guard let code = given["code"] else {
            throw CognitoError(.unusableAnswer, "The sign-in page has led back without a code.")
        }
        return try tokens(
            try await service.tokens(
                at: try pages.url("oauth2/token"),
                [
                    ("grant_type", "authorization_code"), ("client_id", pool.clientID), ("code", code),
                    ("redirect_uri", attempt.redirect), ("code_verifier", attempt.verifier),
                ], authorization: pageAuthorization(), deadline: deadline))
    }

    /// The page that ends the pool's own session in the browser: without it the next sign-in there asks for nothing.
    ///
    /// - Parameters:
    ///   - pages: The pool's own pages, as the environment names them.
    ///   - redirect: Where the page leads in the end; nil for the first of the pages' redirects.
    /// - Throws: `.configuration` where the pages lead nowhere.
    public func hostedSignOutURL(
        on pages: BackendEnvironment.HostedSignIn, redirect: String? = nil
    ) throws(CognitoError) -> URL {
        guard let redirect = redirect ?? pages.signOutRedirects.first else {
            throw CognitoError(.configuration, "The sign-out page leads nowhere; name a redirect.")
        }
        return try pages.url("logout", [("client_id", pool.clientID), ("logout_uri", redirect)])
    }

    /// The client's id and secret, as the pages take them; nil where it has no secret.
    func pageAuthorization(_ tokens: Credentials.UserPoolTokens? = nil) -> String? {
        (clientSecret ?? tokens?.clientSecret).map {
            "Basic " + Data("\(pool.clientID):\($0)".utf8).base64EncodedString()
        }
    }
}

extension BackendEnvironment.HostedSignIn {
    /// A page, over TLS unless it is this machine's.
    func url(_ path: String, _ query: [(String, String)] = []) throws(CognitoError) -> URL {
        let host = domain.split(separator: ":").first ?? ""
        let scheme = host == "127.0.0.1" || host == "localhost" ? "http" : "https"
        let text = "\(scheme)://\(domain)/\(path)" + (query.isEmpty ? "" : "?" + formText(query))
        guard let url = URL(string: text) else {
            throw CognitoError(.configuration, "The domain of the sign-in pages is no host; write it without https://.")
        }
        return url
    }
}

/// Fields as a form sends them, and as a URL has them.
func formText(_ fields: [(String, String)]) -> String {
    fields.map { "\(URIEncoding.component($0.0))=\(URIEncoding.component($0.1))" }.joined(separator: "&")
}
