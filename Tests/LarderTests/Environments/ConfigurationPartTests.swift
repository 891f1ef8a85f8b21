import Foundation
import LarderOperations
import Testing

@testable import Larder

@Suite("Parts of a configuration that do not say what an environment is")
struct ConfigurationPartTests {
    private static let pages = BackendEnvironment.HostedSignIn(
        domain: "movies.auth.eu-west-1.amazoncognito.com", scopes: ["openid", "email"],
        signInRedirects: ["movies://in", "https://movies.example/in"], signOutRedirects: ["movies://out"])

    private static let oauth = """
        "OAuth": {
          "WebDomain": "movies.auth.eu-west-1.amazoncognito.com", "AppClientId": "client",
          "SignInRedirectURI": "movies://in, https://movies.example/in", "SignOutRedirectURI": "movies://out",
          "Scopes": ["openid", "email"] }
        """

    @Test("The pool's pages are read from each kind of file: domain, scopes and where they lead")
    func pages() throws {
        let aws = WrittenConfiguration.aws.replacing(
            #""AppSync": {"#, with: #""Auth": { "Default": { \#(Self.oauth) } }, "AppSync": {"#, maxReplacements: 1)
        let amplify = WrittenConfiguration.amplify.replacing(
            #""authenticationFlowType": "USER_SRP_AUTH""#,
            with: #""authenticationFlowType": "USER_SRP_AUTH", \#(Self.oauth)"#)
        let outputs = WrittenConfiguration.outputs.replacing(
            #""mfa_configuration": "NONE""#,
            with: """
                "oauth": {
                  "domain": "movies.auth.eu-west-1.amazoncognito.com", "scopes": ["openid", "email"],
                  "redirect_sign_in_uri": ["movies://in", "https://movies.example/in"],
                  "redirect_sign_out_uri": ["movies://out"], "response_type": "code" }
                """)
        let own = WrittenConfiguration.own.replacing(
            #""succeeds": "prototype""#,
            with: """
                "succeeds": "prototype", "hostedSignIn": {
                  "domain": "movies.auth.eu-west-1.amazoncognito.com", "scopes": ["openid", "email"],
                  "signInRedirects": ["movies://in", "https://movies.example/in"],
                  "signOutRedirects": ["movies://out"] }
                """)
        for text in [aws, amplify, outputs, own] {
            #expect(try configuration(text).environment(named: "staging").hostedSignIn == Self.pages, "\(text)")
        }
    }

    @Test("The roles of an identity pool are read where a file names them")
    func roles() throws {
        let role = "arn:aws:iam::1:role/guest"
        let text = WrittenConfiguration.aws.replacing(
            #"444444444444", "Region""#, with: #"444444444444", "UnauthRoleArn": "\#(role)", "Region""#)
        #expect(try configuration(text).environment(named: "a").identityPool?.guestRole == role)
        let user = text.replacing("UnauthRoleArn", with: "AuthRoleArn")
        #expect(try configuration(user).environment(named: "a").identityPool?.userRole == role)
        let own = WrittenConfiguration.own.replacing(
            #"444444444444", "region""#, with: #"444444444444", "guestRole": "g", "userRole": "\#(role)", "region""#)
        let pool = try configuration(own).environment(named: "staging").identityPool
        #expect(pool?.guestRole == "g" && pool?.userRole == role)
    }

    @Test("A domain that is a URL is refused, with what would help")
    func domain() throws {
        var environment = try WrittenConfiguration.environment("staging")
        environment.hostedSignIn = .init(domain: "https://movies.example", signInRedirects: ["movies://in"])
        let error = #expect(throws: LarderError.self) { try environment.validate() }
        #expect(error?.message.contains("without https://") == true)
    }

    @Test("Pages may be at a port, and none of the places to which they lead may be no URL")
    func hostedPlaces() throws {
        var environment = try WrittenConfiguration.environment("staging")
        environment.hostedSignIn = .init(domain: "localhost:9000", signInRedirects: ["movies://in"])
        try environment.validate()
        for (places, signOutPlaces) in [(["in"], ["movies://out"]), (["movies://in"], ["movies://out", "out"])] {
            environment.hostedSignIn = .init(
                domain: "localhost", signInRedirects: places, signOutRedirects: signOutPlaces)
            let error = #expect(throws: LarderError.self) { try environment.validate() }
            #expect(error?.message.contains("where the sign-in pages lead is no URL") == true)
        }
    }

    @Test("Fingerprints of environments are those of the first release, whatever parts were added since")
    func fingerprints() throws {
        var environment = try WrittenConfiguration.environment("staging")
        let full = Fingerprints(
            identity: "d4ce17509a6db6bd54df217e58ff7b3ecacc5b2316b5bf537a4a05b7ed8ef7cb",
            data: "5f57fcf6dba2d046eae7ed76ffe48f376275886637b54e40ece8ff628866bc18",
            storage: "d33d6b91a2352a402924c11e5f813f4e4375da4bc3ea102e5683e6e3828c2ba6")
        #expect(environment.fingerprints == full)
        let definition = environment.definition
        environment.hostedSignIn = Self.pages
        environment.authorization = .iam
        environment.clientSecret = "very-secret"
        environment.identityPool?.guestRole = "arn:aws:iam::1:role/guest"
        #expect(environment.fingerprints == full && environment.definition == definition)
        let bare = BackendEnvironment(name: "bare", api: .init(url: environment.api.url))
        #expect(
            bare.fingerprints
                == Fingerprints(
                    identity: "d37913c34a7f2b20190094e56d1ce49e9dcaa95d058484e896ba8f7cf63a9dce",
                    data: "5f57fcf6dba2d046eae7ed76ffe48f376275886637b54e40ece8ff628866bc18",
                    storage: "0038b3eda4ae8153f70f189f350d7a6b866c754ffb9fbffc651c10fe480c0688"))
    }

    @Test("A list of texts that has something else in it is refused with its place, and nothing is passed over")
    func otherThanTexts() throws {
        for (scopes, kind) in [(#"["openid", 7]"#, "a number"), ("[null]", "null"), (#"[["openid"]]"#, "a list")] {
            let text = WrittenConfiguration.own.replacing(
                #""succeeds": "prototype""#,
                with: """
                    "succeeds": "prototype", "hostedSignIn": {
                      "domain": "movies.example", "scopes": \(scopes), "signInRedirects": ["movies://in"] }
                    """)
            let error = #expect(throws: LarderError.self) { try configuration(text).environment(named: "staging") }
            #expect(
                error?.message.contains("environments.staging.hostedSignIn.scopes: this has \(kind) in it") == true,
                "\(error?.message ?? "")")
        }
    }

    @Test("A misspelt member of the hosted sign-in in Larder's own file is an error that names its place")
    func misspeltPages() throws {
        let text = WrittenConfiguration.own.replacing(
            #""succeeds": "prototype""#,
            with: """
                "succeeds": "prototype", "hostedSignIn": {
                  "domain": "movies.example", "scope": ["openid"], "signInRedirects": ["movies://in"] }
                """)
        let error = #expect(throws: LarderError.self) { try configuration(text).environment(named: "staging") }
        #expect(
            error?.message.hasPrefix("file.json: environments.staging.hostedSignIn.scope: this is not known") == true,
            "\(error?.message ?? "")")
    }

    @Test("Larder reads the client's secret from a file of Amplify's first generation")
    func amplifySecret() throws {
        let text = WrittenConfiguration.amplify.replacing(
            #""AppClientId": "client""#, with: #""AppClientId": "client", "AppClientSecret": "very-secret""#)
        #expect(try configuration(text).environment(named: "a").clientSecret == "very-secret")
    }

    @Test("An environment of a file of Amplify's second generation has no identity pool where the file names none")
    func withoutIdentityPool() throws {
        let text = WrittenConfiguration.outputs.replacing(
            #""identity_pool_id": "eu-west-1:00000000-1111-2222-3333-444444444444", "#, with: "")
        try #require(!text.contains("identity_pool_id"))
        let environment = try configuration(text).environment(named: "a")
        #expect(environment.identityPool == nil && environment.userPool?.clientID == "client")
    }

    @Test("Larder's own file says how an API is authorized, by one of AppSync's names for it")
    func ownAuthorization() throws {
        func text(_ name: String) -> String {
            WrittenConfiguration.own.replacing(
                #""apiKey": "da2-secret""#, with: #""apiKey": "da2-secret", "authorization": "\#(name)""#)
        }
        for mode in BackendEnvironment.Authorization.allCases {
            #expect(try configuration(text(mode.rawValue)).environment(named: "staging").authorization == mode)
        }
        let error = #expect(throws: LarderError.self) { try configuration(text("MAGIC")).environment(named: "staging") }
        #expect(error?.message.contains("environments.staging.authorization") == true)
    }

    @Test(
        "An environment leaves out each part whose section the file lacks, whatever tool wrote the file",
        arguments: [
            #"{"AppSync":{"Default":{"ApiUrl":"https://x.example/g","Region":"eu-west-1"}}}"#,
            """
            {"api":{"plugins":{"awsAPIPlugin":{"movies":{
              "endpointType":"GraphQL","endpoint":"https://x.example/g","region":"eu-west-1"}}}}}
            """, #"{"version":"1","data":{"url":"https://x.example/g","aws_region":"eu-west-1"}}"#,
        ])
    func missingSections(_ text: String) throws {
        let url = try #require(URL(string: "https://x.example/g"))
        let expected = BackendEnvironment(name: "a", api: .init(url: url, region: "eu-west-1"))
        #expect(try configuration(text).environment(named: "a") == expected)
    }

    @Test("The pages of a user pool ask for openid alone, and lead nowhere after a sign-out, unless that is said")
    func defaultPages() {
        let pages = BackendEnvironment.HostedSignIn(domain: "movies.example", signInRedirects: ["movies://in"])
        #expect(pages.scopes == ["openid"] && pages.signOutRedirects == [])
    }

    @Test("A list of APIs that is no object is an error that names its place, and not a list without APIs")
    func apisOfAnotherKind() throws {
        let file = try configuration(#"{"Version": "1.0", "AppSync": []}"#)
        let error = #expect(throws: LarderError.self) { try file.apiNames() }
        #expect(error?.code == .environment && error?.message.hasPrefix("file.json: AppSync: ") == true)
    }

    @Test(
        "Each part of an environment has its own section's region, and not that of another part",
        arguments: [
            """
            {"AppSync":{"Default":{"ApiUrl":"https://x.example/g","Region":"us-east-1"}},
             "CognitoUserPool":{"Default":{"PoolId":"eu-west-1_a","AppClientId":"c","Region":"eu-west-1"}},
             "CredentialsProvider":{"CognitoIdentity":{"Default":{"PoolId":"eu-west-1:1","Region":"eu-west-1"}}},
             "S3TransferUtility":{"Default":{"Bucket":"media","Region":"ap-south-1"}}}
            """,
            """
            {"api":{"plugins":{"awsAPIPlugin":{"movies":{
              "endpointType":"GraphQL","endpoint":"https://x.example/g","region":"us-east-1"}}}},
             "auth":{"plugins":{"awsCognitoAuthPlugin":{
              "CognitoUserPool":{"Default":{"PoolId":"eu-west-1_a","AppClientId":"c","Region":"eu-west-1"}},
              "CredentialsProvider":{"CognitoIdentity":{"Default":{"PoolId":"eu-west-1:1","Region":"eu-west-1"}}}}}},
             "storage":{"plugins":{"awsS3StoragePlugin":{"bucket":"media","region":"ap-south-1"}}}}
            """,
            """
            {"version":"1","data":{"url":"https://x.example/g","aws_region":"us-east-1"},
             "auth":{"aws_region":"eu-west-1","user_pool_id":"eu-west-1_a","user_pool_client_id":"c",
              "identity_pool_id":"eu-west-1:1"},
             "storage":{"aws_region":"ap-south-1","bucket_name":"media"}}
            """,
        ])
    func regions(_ text: String) throws {
        let environment = try configuration(text).environment(named: "a")
        #expect(environment.api.region == "us-east-1")
        #expect(environment.userPool?.region == "eu-west-1" && environment.identityPool?.region == "eu-west-1")
        #expect(environment.bucket?.region == "ap-south-1")
    }
}
