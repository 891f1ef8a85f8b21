import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Credentials", .timeLimit(.minutes(10)))
struct CredentialTests {
    private static let secret = Credentials(
        userPool: .init(
            idToken: "TOKEN-id", accessToken: "TOKEN-access", refreshToken: "TOKEN-refresh", deviceKey: "TOKEN-device",
            expires: Date(timeIntervalSinceReferenceDate: 0.1)),
        cloud: .init(
            identityID: "region:1", accessKeyID: "AK", secretAccessKey: "TOKEN-secret", sessionToken: "TOKEN-session",
            expires: nil))

    @Test("Nothing that prints credentials or keys prints a secret")
    func printing() throws {
        var dumped = ""
        let key = MasterKey()
        let text = Data(key.bytes).base64EncodedString()
        for value in [
            Self.secret, Self.secret.userPool as Any, Self.secret.cloud as Any, key, MasterKeys(current: key),
            CredentialReading.present(Self.secret), [Self.secret], ["a": Self.secret],
        ] as [Any] {
            dump(value, to: &dumped)
            dumped += "\(value) \(String(reflecting: value)) \(String(describing: value))"
        }
        #expect(!dumped.contains("TOKEN"))
        #expect(!dumped.contains(text))
        #expect(!dumped.contains("\(key.bytes[0]), \(key.bytes[1])"))
        #expect(dumped.contains(key.id))
        #expect(dumped.contains("user pool tokens with a refresh token, "))
        let alone = Credentials(userPool: .init(idToken: "i", accessToken: "a", refreshToken: nil, expires: nil))
        #expect("\(alone)" == "user pool tokens without a refresh token, without an end")
    }

    @Test("Sealed credentials are read again, all of them, by another process as well")
    func roundTrip() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
            var guest = Self.secret
            guest.userPool = nil
            try await bench.makePartitions("other")
            try await bench.session("other").accept(guest, as: .guest, within: soon)
            let other = try OperationsDatabase(folder: bench.folder)
            #expect(
                try await bench.session("other", database: other).storedCredentials(within: soon) == .present(guest))
            try other.close()
        }
    }

    @Test("Signing in replaces all there was, of whatever kind")
    func replaced() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(Self.secret, within: soon)
            var new = Self.secret
            new.cloud = nil
            try await session.signIn(new, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(new))
            #expect(try bench.snapshot().credentials.map(\.kind) == ["userPool"])
        }
    }

    @Test("Opening a session and looking at its state asks no key provider", arguments: [true, false])
    func lazy(isSignedIn: Bool) async throws {
        try await withSessions { bench in
            if isSignedIn { try await bench.session().signIn(Self.secret, within: soon) }
            let keys = InMemoryKeyProvider(behaviour: .hanging)
            let session = bench.session(keys: keys)
            #expect(session.state == (isSignedIn ? .signedIn : .signedOut))
            _ = try session.status()
            #expect(keys.reads == 0)
        }
    }

    @Test("A key is made only when something is to be sealed")
    func noKeyWithoutNeed() async throws {
        try await withTemporaryFolder { folder in
            let provider = FileKeyProvider(besides: folder.appending(path: "store"))
            try await withSessions { bench in
                let session = bench.session(keys: provider)
                #expect(try await session.storedCredentials(within: soon) == .absent)
                #expect(!FileManager.default.fileExists(atPath: provider.file.path))
                try await session.signIn(Self.secret, within: soon)
                #expect(FileManager.default.fileExists(atPath: provider.file.path))
            }
        }
    }

    @Test(
        "A credential store that is locked is read as unavailable, and no user is signed out",
        arguments: [
            InMemoryKeyProvider.Behaviour.locked, .hanging, .slow(.seconds(1000)),
        ])
    func locked(_ behaviour: InMemoryKeyProvider.Behaviour) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = behaviour
            // As after a restart: nothing is remembered.
            let session = bench.session()
            let reading = try await session.storedCredentials(within: .milliseconds(50))
            let code: KeyError.Code = behaviour == .locked ? .locked : .timedOut
            #expect(reading == .unavailable(KeyError(code, "")))
            await expectCode(.init(rawValue: code.rawValue)) {
                _ = try await session.credentials(within: .milliseconds(50))
            }
            #expect(session.state == .signedIn)
            #expect(try session.status().quarantined == [])
            #expect(try bench.snapshot().credentials.count == 2)
            bench.keys.behaviour = .ready
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A key provider that hangs holds no caller past the deadline, and few of its calls are left behind")
    func hanging() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            let reads = bench.keys.reads
            let session = bench.session { $0.keyTimeout = .milliseconds(1) }
            await withTaskGroup { group in
                for _ in 0..<50 {
                    group.addTask {
                        let reading = try? await session.storedCredentials(within: .milliseconds(20))
                        #expect(reading == .unavailable(KeyError(.timedOut, "")))
                    }
                }
            }
            #expect(bench.keys.reads - reads <= 4)
            bench.keys.behaviour = .ready
            // A call that was given up has answered for this one.
            #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A slow provider's late answer is used by the next caller")
    func late() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            let session = bench.session()
            let reads = bench.keys.reads
            let reading = try await session.storedCredentials(within: .milliseconds(1))
            #expect(reading == .unavailable(KeyError(.timedOut, "")))
            bench.keys.behaviour = .ready
            #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
            #expect(bench.keys.reads == reads + 1)
        }
    }

    @Test("A key of another id is missing, and that is unavailable, not absent")
    func otherKeys() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            let stranger = InMemoryKeyProvider(MasterKeys(current: MasterKey()))
            let reading = try await bench.session(keys: stranger).storedCredentials(within: soon)
            #expect(reading == .unavailable(KeyError(.unknownKey, "")))
            let nothing = try await bench.session(keys: InMemoryKeyProvider()).storedCredentials(within: soon)
            #expect(nothing == .unavailable(KeyError(.missing, "")))
            #expect(nothing != .unavailable(KeyError(.locked, "")))
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test(
        "A sign-in where the key is gone succeeds, and the credentials that it opened are in quarantine",
        arguments: [nil, MasterKeys(current: MasterKey())])
    func keyGone(others: MasterKeys?) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            let session = bench.session(keys: InMemoryKeyProvider(others))
            var new = Self.secret
            new.cloud = nil
            try await session.signIn(new, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(new))
            let status = try session.status()
            #expect(status.standing.state == .signedIn)
            #expect(status.quarantined.map(\.reasonName) == ["keyGone", "keyGone", "keyGone"])
            #expect(Set(status.quarantined.map(\.kind)) == ["userPool", "cloud", "partitionKey"])
        }
    }

    @Test("A sign-in while the key is only locked is refused, and nothing is lost")
    func signInLocked() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .locked
            await expectCode(.init(rawValue: "keys.locked")) {
                try await bench.session().signIn(Credentials(userPool: Self.secret.userPool), within: soon)
            }
            bench.keys.behaviour = .ready
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("A session's error has the key provider's error as its cause")
    func causeOfKeys() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .locked
            let error = await larderError { try await bench.session().signIn(Self.secret, within: soon) }
            #expect(error?.code == .keysLocked && (error?.cause as? KeyError)?.code == .locked, "\(error as Any)")
            bench.keys.behaviour = .ready
        }
    }

    @Test("A sign-in that fails, since no new key can be made either, loses nothing")
    func signInWithoutKey() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            let before = try bench.snapshot()
            let nothing = EnvironmentKeyProvider { [:] }
            await #expect(throws: LarderError.self) {
                try await bench.session(keys: nothing).signIn(Self.secret, within: soon)
            }
            #expect(try bench.snapshot() == before)
            #expect(try bench.session().status().quarantined == [])
            #expect(try await bench.session().storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("Two sessions that make the key of a new partition at once agree on one")
    func race() async throws {
        for _ in 0..<5 {
            try await withSessions { bench in
                let other = try OperationsDatabase(folder: bench.folder)
                let sessions = [bench.session(), bench.session(database: other)]
                try await withThrowingTaskGroup { group in
                    for session in sessions { group.addTask { try await session.signIn(Self.secret, within: soon) } }
                    try await group.waitForAll()
                }
                for session in sessions + [bench.session()] {
                    #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
                }
                #expect(try sessions[0].status().quarantined == [])
                try other.close()
            }
        }
    }

    @Test("A key file in the store's folder is refused before anything is sealed with it")
    func keyInside() async throws {
        try await withSessions { bench in
            let provider = FileKeyProvider(file: bench.folder.appending(path: "locks/../keys/k"))
            await expectCode(.init(rawValue: "keys.exposed")) {
                try await bench.session(keys: provider).signIn(Self.secret, within: soon)
            }
            #expect(!FileManager.default.fileExists(atPath: provider.file.path))
            #expect(bench.session().state == .signedOut)
        }
    }

    @Test("A key file that a link leads into the store's folder is refused", arguments: ["k", "keys/k"])
    func keyInsideByLink(path: String) async throws {
        try await withSessions { bench in
            try await withTemporaryFolder { outside in
                let link = outside.appending(path: "elsewhere")
                try FileManager.default.createSymbolicLink(at: link, withDestinationURL: bench.folder)
                let provider = FileKeyProvider(file: link.appending(path: path))
                await expectCode(.init(rawValue: "keys.exposed")) {
                    try await bench.session(keys: provider).signIn(Self.secret, within: soon)
                }
                #expect(!FileManager.default.fileExists(atPath: provider.file.path))
            }
        }
    }

    @Test("A copy of the store without its key tells nothing of credentials")
    func copy() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(Self.secret, within: soon)
            try await bench.makePartitions("guest")
            try await bench.session("guest").accept(Credentials(cloud: Self.secret.cloud), as: .guest, within: soon)
            let files = try FileManager.default.subpathsOfDirectory(atPath: bench.folder.path)
            #expect(files.contains("larder.sqlite-wal"))
            let master = Data(try await bench.keys.keys(within: soon).current.bytes)
            var searched = 0
            for file in files {
                guard let bytes = try? Data(contentsOf: bench.folder.appending(path: file)) else { continue }
                for secret in [Data("TOKEN".utf8), master, Data(master.base64EncodedString().utf8)] {
                    #expect(bytes.range(of: secret) == nil, "\(file)")
                }
                searched += bytes.count
            }
            #expect(searched > 1000)
            // Whoever has the copy and another key of their own gets nothing either.
            let reading = try await bench.session(keys: InMemoryKeyProvider(MasterKeys(current: MasterKey())))
                .storedCredentials(within: soon)
            #expect(reading == .unavailable(KeyError(.unknownKey, "")))
        }
    }

    @Test("A partition whose key was destroyed has no credentials, and its sealed key is nowhere on disk any more")
    func destroyed() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(Self.secret, within: soon)
            let sealed = Data(try #require(try bench.snapshot().key).sealed)
            func isThere() throws -> Bool {
                try FileManager.default.subpathsOfDirectory(atPath: bench.folder.path).contains {
                    (try? Data(contentsOf: bench.folder.appending(path: $0)).range(of: sealed)) != nil
                }
            }
            #expect(try isThere())
            #expect(try await bench.database.credentials.destroyKey(of: "main", until: .now + soon))
            #expect(try !isThere())
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(session.state == .signedOut)
            #expect(try session.status().quarantined.map(\.reasonName) == ["keyDestroyed", "keyDestroyed"])
            // Its user may come back.
            try await session.signIn(Self.secret, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
        }
    }

    @Test("Bytes that hold a field twice, one of a newer version, or an end of another length are no credentials")
    func foreignFields() {
        func field(_ number: UInt8, _ contents: [UInt8]) -> [UInt8] {
            var fields = FieldBytes()
            fields.add(number, contents)
            return fields.bytes
        }
        func isTaken(_ kind: Credentials.Part, _ bytes: [UInt8]) -> Bool {
            var credentials = Credentials()
            return credentials.take(kind, bytes)
        }
        let (tokens, cloud) = (field(1, [1]) + field(2, [2]), field(2, [2]) + field(3, [3]))
        #expect(isTaken(.userPool, tokens) && isTaken(.cloud, cloud))
        for more in [field(2, [9]), field(5, [0, 0, 0])] {
            #expect(!isTaken(.userPool, tokens + more) && !isTaken(.cloud, cloud + more))
        }
        #expect(!isTaken(.userPool, tokens + field(7, [])) && !isTaken(.cloud, cloud + field(6, [])))
    }

    @Test("Credentials encode each field under the number that the article on credentials gives it")
    func fieldNumbers() {
        func field(_ number: UInt8, _ text: String) -> [UInt8] {
            [number, UInt8(text.utf8.count), 0, 0, 0] + text.utf8
        }
        let end = Date(timeIntervalSinceReferenceDate: 1)
        let parts = Credentials(
            userPool: .init(
                idToken: "i", accessToken: "a", refreshToken: "r", deviceKey: "d", expires: end, clientSecret: "s"),
            cloud: .init(identityID: "p", accessKeyID: "k", secretAccessKey: "x", sessionToken: "t", expires: end)
        ).parts
        // The date as the `Double` 1.0, the lowest byte first.
        let time: [UInt8] = [5, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F]
        let tokens = [field(1, "i"), field(2, "a"), field(3, "r"), field(4, "d"), time, field(6, "s")]
        let cloud = [field(1, "p"), field(2, "k"), field(3, "x"), field(4, "t"), time]
        #expect(parts.map(\.kind) == [.userPool, .cloud])
        #expect(parts.map(\.bytes) == [Array(tokens.joined()), Array(cloud.joined())])
    }

    @Test("What an answer leaves out of either part stays as it was")
    func completed() {
        var old = Self.secret
        old.userPool?.clientSecret = "TOKEN-client"
        let new = Credentials(
            userPool: .init(idToken: "i2", accessToken: "a2", expires: nil),
            cloud: .init(accessKeyID: "AK2", secretAccessKey: "s2", expires: nil)
        ).completed(by: old)
        let expected = Credentials(
            userPool: .init(
                idToken: "i2", accessToken: "a2", refreshToken: "TOKEN-refresh", deviceKey: "TOKEN-device",
                expires: nil, clientSecret: "TOKEN-client"),
            cloud: .init(identityID: "region:1", accessKeyID: "AK2", secretAccessKey: "s2", expires: nil))
        #expect(new == expected)
        // What it has goes before what was there.
        let other = Credentials(
            userPool: .init(
                idToken: "i3", accessToken: "a3", refreshToken: "r3", deviceKey: "d3", expires: nil, clientSecret: "c3"),
            cloud: .init(identityID: "region:3", accessKeyID: "AK3", secretAccessKey: "s3", expires: nil))
        #expect(other.completed(by: old) == other)
    }

    @Test("Credentials end when the first of their parts ends")
    func firstEnd() {
        var credentials = Self.secret
        for (tokens, keys, end) in [(1.0, 2.0, 1.0), (2.0, 1.0, 1.0)] {
            credentials.userPool?.expires = Date(timeIntervalSince1970: tokens)
            credentials.cloud?.expires = Date(timeIntervalSince1970: keys)
            #expect(credentials.expires == Date(timeIntervalSince1970: end))
        }
    }

    @Test("A token that ends before it began says nothing of how long it is good")
    func tokenLifetime() {
        func lifetime(_ claims: String) -> Double? {
            JSONWebToken("e30.\(Data(claims.utf8).base64ForURLs).s")?.lifetime
        }
        #expect(lifetime(#"{"iat":100,"exp":160}"#) == 60)
        #expect(lifetime(#"{"iat":100,"exp":100}"#) == nil && lifetime(#"{"iat":100,"exp":40}"#) == nil)
    }

    @Test("A text of less or more than three parts is no JSON Web Token")
    func tokenParts() {
        let claims = Data(#"{"sub":"7a"}"#.utf8).base64ForURLs
        #expect(JSONWebToken("e30.\(claims).s")?.claims.sub == "7a")
        for text in ["", claims, "e30.\(claims)", "e30.\(claims).s.t"] {
            #expect(JSONWebToken(text)?.claims.sub == nil, "\(text)")
        }
    }

    @Test("The key that was made for a sign-in is remembered: no provider is asked for it again")
    func rememberedKey() async throws {
        try await withSessions { bench in
            let session = bench.session()
            try await session.signIn(Self.secret, within: soon)
            let reads = bench.keys.reads
            #expect(try await session.storedCredentials(within: soon) == .present(Self.secret))
            #expect(bench.keys.reads == reads)
        }
    }

    @Test("A provider that did not answer in its time is asked again by the next caller")
    func askedAgain() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            let (reads, session) = (bench.keys.reads, bench.session { $0.keyTimeout = .milliseconds(1) })
            for _ in 0..<2 { _ = try await session.storedCredentials(within: .milliseconds(20)) }
            try await eventually { bench.keys.reads == reads + 2 }
            bench.keys.behaviour = .ready
        }
    }

    @Test("A caller who is cancelled while a key is waited for gets .cancelled")
    func cancelled() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(Self.secret, within: soon)
            bench.keys.behaviour = .hanging
            let (reads, session) = (bench.keys.reads, bench.session())
            let asking = Task { try await session.credentials(within: soon) }
            try await eventually { bench.keys.reads > reads }
            asking.cancel()
            await expectCode(.cancelled) { _ = try await asking.value }
            bench.keys.behaviour = .ready
        }
    }

    @Test("Credentials are described by what there is of them, and until when")
    func described() {
        let both = Credentials(
            userPool: .init(idToken: "i", accessToken: "a", expires: Date(timeIntervalSince1970: 1_800_000_000)),
            cloud: .init(identityID: "region:1", accessKeyID: "k", secretAccessKey: "s", expires: nil))
        let (tokens, keys) = ("until 2027-01-15T08:00:00Z", "cloud credentials of region:1, without an end")
        #expect("\(both)" == "user pool tokens without a refresh token, \(tokens), \(keys)")
        #expect("\(Credentials())" == "no credentials")
    }

    @Test("Readings without a key are equal and hash alike where the errors' codes are the same")
    func hashedReadings() {
        let one = CredentialReading.unavailable(KeyError(.locked, "one"))
        let other = CredentialReading.unavailable(KeyError(.locked, "other"))
        #expect(one == other && one.hashValue == other.hashValue)
    }

    @Test("A token's claims are written in base64 for URLs, without padding")
    func tokenLetters() {
        // Their usual base64 has both letters that URLs do not have, and padding.
        let claims = Data(#"{"sub":"~~~???"}"#.utf8)
        #expect(claims.base64ForURLs == "eyJzdWIiOiJ-fn4_Pz8ifQ")
        #expect(JSONWebToken("e30.eyJzdWIiOiJ-fn4_Pz8ifQ.s")?.claims.sub == "~~~???")
    }

    @Test("Cloud credentials without an end are always fresh")
    func endless() {
        #expect(Self.secret.has(.cloud, freshAt: .distantFuture, margin: .seconds(60)))
    }
}
