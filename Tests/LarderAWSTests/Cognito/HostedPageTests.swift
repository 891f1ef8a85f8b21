import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Testing

@Suite("The pages of a user pool", .timeLimit(.minutes(10)))
struct HostedPageTests {
    @Test("An error of the sign-in pages whose name is not known has the name that they gave")
    func unknownNameOfPages() async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = try script.pages()
            script.set("", #"{"error": "new"}"#, status: 400)
            let pool = script.pool { $0.refreshesOn = pages }
            let error = await #expect(throws: CognitoError.self) {
                _ = try await pool.refresh(CognitoScript.tokens(), within: ample)
            }
            #expect(error?.code == .rejected && error?.serverCode == "new")
        }
    }

    @Test("Pages that answer a revocation without a word have revoked")
    func revokedSilently() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("", "")
            let pages = try script.pages()
            try await script.pool { $0.refreshesOn = pages }.revoke(CognitoScript.tokens(), within: ample)
            #expect(script.server.requests.count == 1)
        }
    }

    @Test(
        "Each name of an error that the sign-in pages have is told as what it is, and a status where there is none",
        arguments: [
            (400, #"{"error": "invalid_grant"}"#, CognitoError.Code.signInAgain),
            (200, #"{"error": "invalid_grant"}"#, .signInAgain),
            (401, #"{"error": "invalid_client"}"#, .clientSecret),
            (400, #"{"error": "unauthorized_client"}"#, .flowNotEnabled),
            (400, #"{"error": "unsupported_grant_type"}"#, .flowNotEnabled),
            (400, #"{"error": "invalid_scope"}"#, .configuration),
            (400, #"{"error": "new"}"#, .rejected), (503, #"{"error": "new"}"#, .unreachable),
            (429, "{}", .throttled), (500, "{}", .unreachable), (404, "{}", .rejected),
            (502, "<html>", .unreachable), (200, "<html>", .unusableAnswer),
        ])
    func pages(_ status: Int, _ body: String, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = try script.pages()
            script.set("", body, status: status)
            let pool = script.pool { $0.refreshesOn = pages }
            let found = try await cognitoCode { try await pool.refresh(CognitoScript.tokens(), within: ample) }
            #expect(found == code)
        }
    }

    @Test("An error of the sign-in pages has their name for it, their words and the time to wait")
    func pagesError() async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = try script.pages()
            script.set(
                "", #"{"error": "new", "error_description": "said"}"#, status: 400, headers: [("Retry-After", "7")])
            let error = await #expect(throws: CognitoError.self) {
                _ = try await script.pool { $0.refreshesOn = pages }.refresh(CognitoScript.tokens(), within: ample)
            }
            #expect(error?.serverCode == "new" && error?.message == "said" && error?.retryAfter == .seconds(7))
        }
    }

    /// The URL with which the page leads back to the program, with the attempt's state for STATE.
    private func callback(_ text: String, to attempt: HostedSignIn) throws -> URL {
        let items = URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
        let state = try #require(items.first { $0.name == "state" }?.value)
        return try #require(URL(string: text.replacing("STATE", with: state)))
    }

    @Test("An error with which the sign-in page leads back has the page's name for it, and its words")
    func callbackError() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool(), try script.pages())
            let attempt = try pool.beginHostedSignIn(on: pages)
            let callback = try callback(
                "movies://in?error=server_error&error_description=said&state=STATE", to: attempt)
            let error = await #expect(throws: CognitoError.self) {
                _ = try await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
            }
            #expect(error?.serverCode == "server_error" && error?.message == "said")
        }
    }

    @Test("The code and the error's words in a callback's URL are decoded, a plus sign to a space")
    func escapedCallback() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool(), try script.pages())
            let attempt = try pool.beginHostedSignIn(on: pages)
            let code = try callback("movies://in?code=a%2Fb%3D%26c&state=STATE", to: attempt)
            _ = try? await pool.finishHostedSignIn(attempt, on: pages, callback: code, within: ample)
            let body = String(decoding: try #require(script.server.requests.last).body, as: UTF8.self)
            #expect(body.contains("code=a%2Fb%3D%26c&"))
            let refusal = try callback(
                "movies://in?error=server_error&error_description=caf%C3%A9+is%20shut&state=STATE", to: attempt)
            let error = await #expect(throws: CognitoError.self) {
                _ = try await pool.finishHostedSignIn(attempt, on: pages, callback: refusal, within: ample)
            }
            #expect(error?.message == "café is shut")
        }
    }

    @Test(
        "A URL that answers another sign-in on the pages, or none, is refused before a token is asked for",
        arguments: [
            ("movies://in?code=c&state=other", CognitoError.Code.invalidInput), ("movies://in?code=c", .invalidInput),
            ("other://in?code=c&state=STATE", .invalidInput), ("movies://in?state=STATE", .unusableAnswer),
            ("movies://in?error=access_denied&state=STATE", .cancelled),
            ("movies://in?error=server_error&state=STATE", .rejected),
        ])
    func callbacks(_ callback: String, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool(), try script.pages())
            let attempt = try pool.beginHostedSignIn(on: pages)
            let url = try self.callback(callback, to: attempt)
            let found = try await cognitoCode {
                try await pool.finishHostedSignIn(attempt, on: pages, callback: url, within: ample)
            }
            #expect(found == code && script.server.requests.isEmpty)
        }
    }

    @Test("The code of the pages is exchanged within the time that the caller says, whatever the pool's options say")
    func exchangedInTime() async throws {
        let (id, access) = (try CognitoScript.token("id"), try CognitoScript.token("access"))
        try await CognitoScript.run { (script) async throws in
            script.set("", #"{"id_token": "\#(id)", "access_token": "\#(access)", "expires_in": 60}"#)
            let (pool, pages) = (script.pool { $0.timeout = .zero }, try script.pages())
            let attempt = try pool.beginHostedSignIn(on: pages)
            let callback = try callback("movies://in?code=c&state=STATE", to: attempt)
            let tokens = try await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
            #expect(tokens.subject == "sub-ann")
        }
    }

    @Test("The code of the pages is exchanged within the time of the pool's options, where the caller says none")
    func exchangedInTimeOfOptions() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool { $0.timeout = .zero }, try script.pages())
            let attempt = try pool.beginHostedSignIn(on: pages)
            let callback = try callback("movies://in?code=c&state=STATE", to: attempt)
            let code = try await cognitoCode {
                try await pool.finishHostedSignIn(attempt, on: pages, callback: callback)
            }
            #expect(code == .unreachable && script.server.requests.isEmpty)
        }
    }

    @Test("The sign-out page leads where the program says, and otherwise to the first of the pages' redirects")
    func signOutRedirect() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool(), try script.pages())
            let (first, other) = (
                try pool.hostedSignOutURL(on: pages), try pool.hostedSignOutURL(on: pages, redirect: "movies://bye")
            )
            #expect(first.query()?.hasSuffix("logout_uri=movies%3A%2F%2Fout") == true)
            #expect(other.query()?.hasSuffix("logout_uri=movies%3A%2F%2Fbye") == true)
        }
    }

    @Test("Of several redirects the sign-out page leads to the first, where the program names none")
    func firstSignOutRedirect() async throws {
        try await CognitoScript.run { (script) async throws in
            var pages = try script.pages()
            pages.signOutRedirects = ["movies://out", "movies://other"]
            let url = try script.pool().hostedSignOutURL(on: pages)
            #expect(url.query()?.hasSuffix("logout_uri=movies%3A%2F%2Fout") == true)
        }
    }

    @Test("Hosted pages without redirects are a configuration error, for a sign-in and for a sign-out")
    func leadNowhere() async throws {
        try await CognitoScript.run { (script) async throws in
            let pool = script.pool()
            let pages = BackendEnvironment.HostedSignIn(domain: "movies.example", signInRedirects: [])
            let signIn = #expect(throws: CognitoError.self) { try pool.beginHostedSignIn(on: pages) }
            let signOut = #expect(throws: CognitoError.self) { try pool.hostedSignOutURL(on: pages) }
            #expect(signIn?.code == .configuration && signOut?.code == .configuration)
        }
    }

    @Test("The sign-in page leads where the program says, or to the first redirect, and the code is exchanged with it")
    func signInRedirect() async throws {
        try await CognitoScript.run { (script) async throws in
            let pool = script.pool()
            var pages = try script.pages()
            (pages.scopes, pages.signInRedirects) = ([], ["movies://in", "movies://other"])
            for redirect in [nil, "movies://other"] {
                let attempt = try pool.beginHostedSignIn(on: pages, redirect: redirect)
                let items = URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems ?? []
                let query = Dictionary(items.map { ($0.name, $0.value) }) { $1 }
                #expect(attempt.redirect == redirect ?? "movies://in")
                #expect(query["redirect_uri"] == attempt.redirect)
                #expect(query["scope"] == nil)
                let state = try #require(query["state"] ?? nil)
                let callback = try #require(URL(string: "\(attempt.redirect)?code=c&state=\(state)"))
                _ = try? await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
                let body = String(decoding: try #require(script.server.requests.last).body, as: UTF8.self)
                let last = attempt.redirect.split(separator: "/").last ?? ""
                #expect(body.contains("redirect_uri=movies%3A%2F%2F\(last)&"))
            }
        }
    }

    @Test(
        "The pages are opened over TLS, unless they are this machine's",
        arguments: [
            ("localhost:9000", "http://localhost:9000/"), ("127.0.0.1", "http://127.0.0.1/"),
            ("localhost.example.com", "https://localhost.example.com/"),
        ])
    func scheme(domain: String, root: String) async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = BackendEnvironment.HostedSignIn(
                domain: domain, signInRedirects: [], signOutRedirects: ["movies://out"])
            #expect(try script.pool().hostedSignOutURL(on: pages).absoluteString.hasPrefix(root))
        }
    }

    @Test("The pages are asked with the client's secret that the tokens keep, where the program gives none")
    func sealedSecret() async throws {
        try await CognitoScript.run { (script) async throws in
            let pages = try script.pages()
            let pool = script.pool { $0.refreshesOn = pages }
            var tokens = try CognitoScript.tokens()
            tokens.clientSecret = "sss"
            _ = try? await pool.refresh(tokens, within: ample)
            try await pool.revoke(tokens, within: ample)
            let proof = "Basic " + Data("client:sss".utf8).base64EncodedString()
            #expect(script.server.requests.map { $0.headers["authorization"] } == [[proof], [proof]])
            let body = String(decoding: try #require(script.server.requests.last).body, as: UTF8.self)
            #expect(body.contains("token=R&"))
        }
    }
}
