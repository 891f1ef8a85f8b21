import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite(
    "Signing in from the command line", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct SignInVerbTests {
    /// A store whose environment has a user pool, and the pool.
    private struct Scene {
        let fixture: CommandFixture
        let pool: String

        func larder(
            _ verb: String, _ more: [String] = [], input: String = "", environment: [String: String] = [:]
        ) async throws -> Outcome {
            try await LarderProcess.run(
                [verb, "--store", fixture.store, "--endpoint", pool] + more, input: input, environment: environment)
        }

        func session() async throws -> String {
            try await LarderProcess.run(["session", "--store", fixture.store, "--json"]).output
        }
    }

    private static func run(
        steps: String = "", user: PartitionUser? = nil, secret: String? = nil, flowsOff: [String] = [],
        _ body: (Scene) async throws -> Void
    ) async throws {
        let setup = """
            {"pool": "us-east-1_AbC123xyz", "client": "client", "identityPool": "us-east-1:0",
             "secret": \(secret.map { "\"\($0)\"" } ?? "null"), "flowsOff": \(flowsOff),
             "users": {"ann": {"password": "right password", "steps": [\(steps)]}}}
            """
        let server = try await ServerProcess.start("cognito.py", [setup])
        try await withStarted(server, stop: { await $0.stop() }) { server in
            try await CommandFixture.withFiles { fixture in
                let store = try Store.open(
                    at: URL(filePath: fixture.store), schema: try Schema(parsing: CommandFixture.schema))
                let url = try #require(URL(string: "https://api.example/graphql"))
                _ = try store.partition(
                    of: BackendEnvironment(
                        name: "movies", api: .init(url: url),
                        userPool: .init(id: "us-east-1_AbC123xyz", clientID: "client", region: "us-east-1")), user: user
                )
                try store.close()
                try await body(Scene(fixture: fixture, pool: "http://127.0.0.1:\(server.words[0])/"))
            }
        }
    }

    @Test("Nobody is signed in to another user's partition")
    func anothers() async throws {
        try await Self.run(user: .user("bob")) { scene in
            let refused = try await scene.larder("sign-in", ["--json"], input: "ann\nright password\n")
            #expect(refused.status != 0 && refused.errors.contains("cognito.foreignToken"), "\(refused.errors)")
            let made = try await scene.larder("sign-up", ["--json"], input: "eve\nlong enough\ne@example.com\n123456\n")
            #expect(made.status != 0 && made.errors.contains("cognito.foreignToken"), "\(made.errors)")
            #expect(try await scene.session().contains(#""state":"signedIn""#) == false)
        }
    }

    @Test("Lines of standard input sign a user in by a proof of the password, and signing out forgets the credentials")
    func whole() async throws {
        try await Self.run(flowsOff: ["USER_PASSWORD_AUTH"]) { scene in
            let signed = try await scene.larder("sign-in", ["--json"], input: "ann\nright password\n")
            #expect(signed.status == 0, "\(signed.errors)")
            #expect(signed.output.contains(#""state":"signedIn""#))
            #expect(try await scene.session().contains(#""state":"signedIn""#))
            let left = try await scene.larder("sign-out", ["--json"])
            #expect(left.status == 0 && left.output.contains(#""serverTold":true"#), "\(left.output)\(left.errors)")
            #expect(try await scene.session().contains(#""state":"signedOut""#))
        }
    }

    @Test("Signing out forgets the credentials although the user pool cannot be told")
    func poolAway() async throws {
        try await Self.run { scene in
            let signed = try await scene.larder("sign-in", input: "ann\nright password\n")
            #expect(signed.status == 0, "\(signed.errors)")
            let away = ["sign-out", "--endpoint", "http://127.0.0.1:1/", "--json", "--store", scene.fixture.store]
            let left = try await LarderProcess.run(away)
            #expect(left.status == 0 && left.output.contains(#""serverTold":false"#), "\(left.output)\(left.errors)")
            #expect(try await scene.session().contains(#""state":"signedOut""#))
            let kept = try await LarderProcess.run(["credentials", "--json", "--store", scene.fixture.store])
            #expect(kept.output.contains(#""credentials":[],"quarantined":[]"#), "\(kept.output)")
            let again = try await LarderProcess.run(away)
            #expect(again.status == 0 && again.output.contains(#""serverTold":null"#), "\(again.output)\(again.errors)")
        }
    }

    @Test("A code is a line as well, where the pool asks for one")
    func code() async throws {
        try await Self.run(steps: #""SMS_MFA""#) { scene in
            let signed = try await scene.larder(
                "sign-in", ["--flow", "password"], input: "ann\nright password\n123456\n")
            #expect(signed.status == 0, "\(signed.errors)")
        }
    }

    @Test("A wrong password ends the command of a pipe, and no output has what was given")
    func wrongPassword() async throws {
        try await Self.run { scene in
            let refused = try await scene.larder("sign-in", ["--flow", "password"], input: "ann\nwrong secret\n")
            #expect(refused.status == 1)
            #expect(!(refused.output + refused.errors).contains("wrong secret"))
            #expect(try await scene.session().contains(#""state":"signedOut""#))
        }
    }

    @Test(
        "What to do about a failure is told in the user's language, in a pipe too",
        arguments: [("ja_JP.UTF-8", "パスワードが正しくありません"), ("JA", "パスワードが正しくありません"), ("en", "Check both")])
    func language(_ name: String, _ advice: String) async throws {
        try await Self.run { scene in
            let refused = try await scene.larder(
                "sign-in", ["--flow", "password", "--locale", name], input: "ann\nwrong secret\n")
            #expect(refused.status == 1 && refused.errors.contains("hint: "), "\(refused.errors)")
            #expect(refused.errors.contains(advice), "\(refused.errors)")
        }
    }

    @Test(
        "The language is that of LC_ALL, of LC_MESSAGES, of LANG, in this order, unless it is named",
        arguments: [
            ("ja_JP.UTF-8", "en", "en", nil, true), ("", "ja", "en", nil, true), ("", "", "ja_JP", nil, true),
            ("en", "ja", "ja", nil, false), ("", "en", "ja", nil, false), ("ja", "ja", "ja", "en", false),
        ] as [(String, String, String, String?, Bool)])
    func variables(all: String, messages: String, lang: String, named: String?, isJapanese: Bool) async throws {
        try await Self.run { scene in
            let refused = try await scene.larder(
                "sign-in", ["--flow", "password"] + (named.map { ["--locale", $0] } ?? []),
                input: "ann\nwrong secret\n", environment: ["LC_ALL": all, "LC_MESSAGES": messages, "LANG": lang])
            #expect(refused.errors.contains(isJapanese ? "パスワードが正しくありません" : "Check both"), "\(refused.errors)")
        }
    }

    @Test("The client's secret comes from LARDER_CLIENT_SECRET, and signing out needs it no more")
    func clientSecret() async throws {
        try await Self.run(secret: "hush") { scene in
            let without = try await scene.larder("sign-in", ["--json"], input: "ann\nright password\n")
            #expect(without.status == 1 && without.errors.contains("cognito.clientSecret"), "\(without.errors)")
            let signed = try await scene.larder(
                "sign-in", ["--json"], input: "ann\nright password\n", environment: ["LARDER_CLIENT_SECRET": "hush"])
            #expect(signed.status == 0 && !(signed.output + signed.errors).contains("hush"), "\(signed.errors)")
            let left = try await scene.larder("sign-out", ["--json"])
            #expect(left.output.contains(#""serverTold":true"#), "\(left.output)\(left.errors)")
        }
    }

    @Test("Signing out tells what was not sent yet")
    func unsent() async throws {
        try await Self.run { scene in
            let place = URL(filePath: scene.fixture.store)
            #expect(try await scene.larder("sign-in", input: "ann\nright password\n").status == 0)
            try await OperationsDatabase.using(place) { database in
                let name = try #require(try database.environments.current()?.partition?.name)
                let content = MutationContent(document: "mutation { note }", variables: Array("{}".utf8))
                for _ in 0..<2 {
                    _ = try await database.mutations.enqueue(
                        MutationDraft(partition: name, content: content, created: Date()))
                }
                let upload = TransferDraft(
                    partition: name, kind: .upload, bucket: "media", key: "k", path: "/file",
                    source: .init(device: 1, inode: 2, size: 10, modified: 3), created: Date())
                try await database.transfers.enqueue([upload])
            }
            let text = try await scene.larder("sign-out")
            #expect(text.output == "signed out; not sent yet: 2 mutations and 1 upload\n", "\(text.errors)")
            let json = try await scene.larder("sign-out", ["--json"]).output
            #expect(json.contains(#""unsentMutations":2,"deadLetters":0,"unsentUploads":1"#), "\(json)")
        }
    }

    @Test("The last line of the input is an answer too where no break ends it")
    func unendedLine() async throws {
        try await Self.run { scene in
            let outcome = try await scene.larder("sign-in", input: "ann\r\nright password")
            #expect(outcome.status == 0, "\(outcome.errors)")
        }
    }

    @Test("Input that ends too early signs nobody in", arguments: ["", "ann\n"])
    func short(input: String) async throws {
        try await Self.run { scene in
            let outcome = try await scene.larder("sign-in", input: input)
            #expect(outcome.status == 1 && outcome.errors.contains("given up"), "\(outcome.errors)")
        }
    }

    @Test("With --json a pipe that has to choose is told nothing but the result, or the failure")
    func chosen() async throws {
        try await Self.run { scene in
            let short = try await scene.larder("sign-in", ["--flow", "choice", "--json"], input: "ann\n")
            #expect(short.status == 1 && short.errors.hasPrefix("{"), "\(short.errors)")
            let text = try await scene.larder("sign-in", ["--flow", "choice", "--locale", "en"], input: "ann\n")
            #expect(text.errors.contains("1 With your password\n2 With a code by e-mail\n"), "\(text.errors)")
            #expect(!text.errors.contains("Back") && !text.errors.contains("Cancel"), "\(text.errors)")
        }
    }

    @Test("An endpoint of another machine that is not encrypted is said to be so", arguments: ["127.example", "::1"])
    func unencrypted(host: String) async throws {
        try await Self.run { scene in
            let place = host.contains(":") ? "http://[\(host)]:9/" : "http://\(host)/"
            let outcome = try await LarderProcess.run(
                ["sign-in", "--store", scene.fixture.store, "--endpoint", place], input: "")
            #expect(outcome.errors.contains("not encrypted") == (host == "127.example"), "\(outcome.errors)")
        }
    }

    @Test("An account is made, confirmed and signed in")
    func signingUp() async throws {
        try await Self.run { scene in
            let made = try await scene.larder(
                "sign-up", ["--json"], input: "bob\na new password\nbob@example.com\n123456\n")
            #expect(made.status == 0, "\(made.errors)")
            #expect(made.output.contains(#""state":"signedIn""#))
        }
    }

    @Test("The sign-in after a sign-up begins as it is told")
    func signingUpByFlow() async throws {
        try await Self.run(flowsOff: ["USER_SRP_AUTH"]) { scene in
            let made = try await scene.larder(
                "sign-up", ["--json", "--flow", "password"], input: "bob\na new password\nbob@example.com\n123456\n")
            #expect(made.status == 0 && made.output.contains(#""state":"signedIn""#), "\(made.errors)")
        }
    }

    @Test("An account is asked for the attributes that are named, in place of the e-mail address")
    func attributes() async throws {
        try await Self.run { scene in
            let made = try await scene.larder(
                "sign-up", ["--json", "--attribute", "given_name", "--attribute", "family_name"],
                input: "bob\na new password\nBob\nBrown\n123456\n")
            #expect(made.status == 0 && made.output.contains(#""state":"signedIn""#), "\(made.errors)")
        }
    }

    @Test("In a terminal the questions are in the user's language, and a password is not shown")
    func terminal() async throws {
        try await Self.run { scene in
            let terminal = try Terminal(
                ["sign-in", "--store", scene.fixture.store, "--endpoint", scene.pool, "--locale", "ja"],
                showsErrors: true, typing: true)
            try await terminal.wait(for: "サインイン")
            try await terminal.wait(for: "1-3: ")
            terminal.type("\n")
            try await terminal.wait(for: "ユーザー名: ")
            terminal.type("ann\n")
            try await terminal.wait(for: "パスワード: ")
            // The key that suspends a program does nothing there: a shell would have the terminal show what follows.
            terminal.type("right \u{1A}password\n")
            #expect(await terminal.finish() == 0, "\(terminal.shown)")
            #expect(!terminal.shown.contains("right password"))
            #expect(terminal.shown.contains("サインインしました"), "\(terminal.shown)")
        }
    }

    @Test("An interrupt at any question gives the sign-in up, and what is typed is shown again", arguments: 0..<5)
    func interrupted(answers: Int) async throws {
        try await Self.run(steps: #""SMS_MFA""#) { scene in
            let terminal = try Terminal(
                [
                    "sign-in", "--store", scene.fixture.store, "--endpoint", scene.pool, "--locale", "en", "--flow",
                    "password",
                ], showsErrors: true, typing: true)
            let questions = [
                ("1-3: ", "\n"), ("User name: ", "ann\n"), ("Password: ", "right password\n"), ("1 Continue", "\n"),
                ("Code: ", ""),
            ]
            for (question, answer) in questions[..<answers] {
                try await terminal.wait(for: question)
                terminal.type(answer)
            }
            try await terminal.wait(for: questions[answers].0)
            terminal.interrupt()
            #expect(await terminal.finish() == 1, "\(terminal.shown)")
            #expect(terminal.shown.contains("given up") && terminal.showsTyping, "\(terminal.shown)")
            #expect(try await scene.session().contains(#""state":"signedOut""#))
        }
    }

    @Test("An interrupt while the pool is asked gives the sign-in up at once")
    func interruptedAtWork() async throws {
        try await Self.run { scene in
            let pool = try SilentListener()
            let terminal = try Terminal(
                [
                    "sign-in", "--store", scene.fixture.store, "--endpoint", "http://127.0.0.1:\(pool.port)/",
                    "--locale", "en", "--flow", "password", "--timeout", "86400",
                ], showsErrors: true, typing: true)
            for (question, answer) in [("1-3: ", ""), ("User name: ", "ann"), ("Password: ", "right password")] {
                try await terminal.wait(for: question)
                terminal.type(answer + "\n")
            }
            let deadline = SuspendingClock.now + .seconds(60)
            while !pool.isAsked, .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
            terminal.interrupt()
            #expect(await terminal.finish() == 1, "\(terminal.shown)")
            #expect(terminal.shown.contains("given up") && terminal.showsTyping, "\(terminal.shown)")
            #expect(try await scene.session().contains(#""state":"signedOut""#))
        }
    }

    /// A sign-in in a terminal, in English and by the password.
    private static func terminal(_ scene: Scene, _ more: String...) throws -> Terminal {
        try Terminal(
            [
                "sign-in", "--store", scene.fixture.store, "--endpoint", scene.pool, "--locale", "en", "--flow",
                "password",
            ] + more, showsErrors: true, typing: true)
    }

    @Test("Who chooses to cancel has given the sign-in up")
    func cancelled() async throws {
        try await Self.run { scene in
            let terminal = try Self.terminal(scene)
            try await terminal.wait(for: "3 Cancel")
            terminal.type("3\n")
            #expect(await terminal.finish() == 1, "\(terminal.shown)")
            #expect(terminal.shown.contains("Sign-in cancelled"), "\(terminal.shown)")
            #expect(terminal.shown.contains("The sign-in was given up"), "\(terminal.shown)")
        }
    }

    @Test("A terminal shows the key of an authenticator app that is to be set up, and then asks for its code")
    func authenticator() async throws {
        try await Self.run(steps: #""MFA_SETUP""#) { scene in
            let terminal = try Self.terminal(scene)
            for (question, answer) in [
                ("1-3: ", ""), ("User name: ", "ann"), ("Password: ", "right password"), ("1 Continue", ""),
                ("Code: ", "123456"),
            ] {
                try await terminal.wait(for: question)
                terminal.type(answer + "\n")
            }
            #expect(await terminal.finish() == 0, "\(terminal.shown)")
            let lines = terminal.shown.split(whereSeparator: \.isNewline)
            #expect(lines.contains("JBSWY3DPEHPK3PXP"), "\(terminal.shown)")
            #expect(lines.contains { $0.hasPrefix("otpauth://totp/") && $0.contains("secret=JBSWY3DPEHPK3PXP") })
        }
    }

    @Test("What has failed is told in a terminal, and asked again; what its user cannot mend is told with its reason")
    func failedInTerminal() async throws {
        for secret in [nil, "hush"] {
            try await Self.run(secret: secret) { scene in
                let terminal = try Self.terminal(scene)
                for (question, answer) in [("1-3: ", ""), ("User name: ", "ann"), ("Password: ", "wrong password")] {
                    try await terminal.wait(for: question)
                    terminal.type(answer + "\n")
                }
                let reason = secret == nil ? "Check both and try again." : "SECRET_HASH was not received"
                try await terminal.wait(for: reason)
                terminal.type("3\n")
                #expect(await terminal.finish() == 1, "\(terminal.shown)")
                #expect(!terminal.shown.contains("Incorrect username or password"), "\(terminal.shown)")
                #expect(terminal.shown.contains("LARDER_CLIENT_SECRET") == (secret != nil), "\(terminal.shown)")
            }
        }
    }

    @Test("A pipe that chooses what is not offered has wrong input, and is not asked again")
    func wrongChoice() async throws {
        try await Self.run { scene in
            let outcome = try await scene.larder("sign-in", ["--flow", "choice"], input: "ann\n9\n1\nright password\n")
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(outcome.errors.contains("A number from 1 to 2 was expected"), "\(outcome.errors)")
        }
    }

    @Test("A code is sent again after a pause, and until then the screen says how long that is")
    func resent() async throws {
        try await Self.run { scene in
            let terminal = try Terminal(
                ["sign-up", "--store", scene.fixture.store, "--endpoint", scene.pool, "--locale", "en"],
                showsErrors: true, typing: true)
            let answers = [
                ("1-3: ", ""), ("User name: ", "bea"), ("New password: ", "long enough"),
                ("E-mail address: ", "b@example.com"),
            ]
            for (question, answer) in answers {
                try await terminal.wait(for: question)
                terminal.type(answer + "\n")
            }
            try await terminal.wait(for: "Confirm your account")
            terminal.type("2\n")
            try await terminal.wait(for: "The code can be sent again in ")
            terminal.interrupt()
            #expect(await terminal.finish() == 1, "\(terminal.shown)")
        }
    }

    @Test("A store without an environment, and one without a user pool, are errors that say so")
    func withoutPool() async throws {
        try await CommandFixture.withStore { fixture in
            let outcome = try await fixture.larder(["sign-in"])
            #expect(outcome.status != 0 && outcome.errors.contains("environment"), "\(outcome.errors)")
        }
    }

    @Test(
        "A line that no answer can be is wrong input: one of more than 4096 bytes, and one that is no UTF-8",
        arguments: [
            ("head -c 4097 /dev/zero | tr '\\0' a", "more than 4096 bytes"), (#"printf 'a\377\n'"#, "not UTF-8"),
        ])
    func unusableLine(printing: String, told: String) async throws {
        try await Self.run { scene in
            let outcome = try await LarderProcess.run(
                shell: #"\#(printing) | "$@""#, ["sign-in", "--store", scene.fixture.store, "--endpoint", scene.pool])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(outcome.errors.hasPrefix("larder: A line of standard input "), "\(outcome.errors)")
            #expect(outcome.errors.contains(told), "\(outcome.errors)")
        }
    }

    @Test("Signing out says in words that the user pool could not be told")
    func poolAwayInWords() async throws {
        try await Self.run { scene in
            #expect(try await scene.larder("sign-in", input: "ann\nright password\n").status == 0)
            let away = ["sign-out", "--endpoint", "http://127.0.0.1:1/", "--store", scene.fixture.store]
            let left = try await LarderProcess.run(away)
            #expect(left.output == "signed out, and the user pool could not be told\n", "\(left.errors)")
            #expect(try await LarderProcess.run(away).output == "signed out\n")
        }
    }

    @Test("sign-in --flow custom answers the pool's own challenge with a line, and wants no password")
    func customFlow() async throws {
        try await Self.run { scene in
            let signed = try await scene.larder("sign-in", ["--flow", "custom", "--json"], input: "ann\nsesame\n")
            #expect(signed.status == 0 && signed.output.contains(#""state":"signedIn""#), "\(signed.errors)")
        }
    }

    @Test(
        "A sign-in or a sign-up gives a silent user pool up after the time that --timeout says",
        arguments: [("sign-in", "ann\nright password\n"), ("sign-up", "bea\nlong enough\nb@example.com\n")])
    func signInTimeout(verb: String, input: String) async throws {
        try await Self.run { scene in
            let pool = try SilentListener()
            let start = SuspendingClock.now
            let outcome = try await LarderProcess.run(
                [
                    verb, "--flow", "password", "--timeout", "1", "--endpoint", "http://127.0.0.1:\(pool.port)/",
                    "--store", scene.fixture.store,
                ], input: input)
            #expect(outcome.status == 1 && pool.isAsked, "\(outcome.errors)")
            #expect(start.duration(to: .now) < .seconds(20))
        }
    }

    @Test("Signing out waits for a silent user pool for the time that --timeout says, and says that it was not told")
    func signOutTimeout() async throws {
        try await Self.run { scene in
            #expect(try await scene.larder("sign-in", input: "ann\nright password\n").status == 0)
            let pool = try SilentListener()
            let start = SuspendingClock.now
            let left = try await LarderProcess.run([
                "sign-out", "--timeout", "1", "--endpoint", "http://127.0.0.1:\(pool.port)/", "--json", "--store",
                scene.fixture.store,
            ])
            #expect(left.status == 0 && left.output.contains(#""serverTold":false"#), "\(left.output)\(left.errors)")
            #expect(pool.isAsked && start.duration(to: .now) < .seconds(20))
        }
    }

    @Test("Signing out counts in JSON the mutations that were set aside")
    func signedOutDeadLetters() async throws {
        try await Self.run { scene in
            #expect(try await scene.larder("sign-in", input: "ann\nright password\n").status == 0)
            try await OperationsDatabase.using(URL(filePath: scene.fixture.store)) { database in
                let name = try #require(try database.environments.current()?.partition?.name)
                let draft = MutationDraft(
                    partition: name, content: MutationContent(document: "mutation { note }"), created: Date())
                _ = try await database.mutations.enqueue(draft)
                try await database.setAside(draft.id)
            }
            let json = try await scene.larder("sign-out", ["--json"]).output
            #expect(json.contains(#""deadLetters":1,"#), "\(json)")
        }
    }
}
