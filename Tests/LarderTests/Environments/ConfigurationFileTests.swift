import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

/// As the tools write them, with what does not matter here beside what does.
enum WrittenConfiguration {
    static let aws = """
        {
          "UserAgent": "aws-amplify/cli", "Version": "0.1.0", "IdentityManager": { "Default": {} },
          "CredentialsProvider": { "CognitoIdentity": { "Default": {
            "PoolId": "eu-west-1:00000000-1111-2222-3333-444444444444", "Region": "eu-west-1" } } },
          "CognitoUserPool": { "Default": {
            "PoolId": "eu-west-1_AbCdEf", "AppClientId": "client", "AppClientSecret": "very-secret",
            "Region": "eu-west-1" } },
          "S3TransferUtility": { "Default": { "Bucket": "media", "Region": "eu-west-1" } },
          "AppSync": {
            "Default": {
              "ApiUrl": "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql", "Region": "eu-west-1",
              "AuthMode": "API_KEY", "ApiKey": "da2-secret", "ClientDatabasePrefix": "movies_API_KEY" },
            "Other": {
              "ApiUrl": "https://def.appsync-api.eu-west-1.amazonaws.com/graphql", "Region": "eu-west-1",
              "AuthMode": "AMAZON_COGNITO_USER_POOLS" }
          }
        }
        """
    static let amplify = """
        {
          "UserAgent": "aws-amplify-cli/2.0", "Version": "1.0",
          "api": { "plugins": { "awsAPIPlugin": {
            "movies": {
              "endpointType": "GraphQL", "endpoint": "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql",
              "region": "eu-west-1", "authorizationType": "API_KEY", "apiKey": "da2-secret" },
            "admin": {
              "endpointType": "REST", "endpoint": "https://x.execute-api.eu-west-1.amazonaws.com/dev",
              "region": "eu-west-1", "authorizationType": "AWS_IAM" }
          } } },
          "auth": { "plugins": { "awsCognitoAuthPlugin": {
            "IdentityManager": { "Default": {} },
            "CredentialsProvider": { "CognitoIdentity": { "Default": {
              "PoolId": "eu-west-1:00000000-1111-2222-3333-444444444444", "Region": "eu-west-1" } } },
            "CognitoUserPool": { "Default": {
              "PoolId": "eu-west-1_AbCdEf", "AppClientId": "client", "Region": "eu-west-1" } },
            "Auth": { "Default": { "authenticationFlowType": "USER_SRP_AUTH" } },
            "AppSync": { "Default": { "ApiUrl": "https://elsewhere.example", "Region": "us-east-1" } }
          } } },
          "storage": { "plugins": { "awsS3StoragePlugin": {
            "bucket": "media", "region": "eu-west-1", "defaultAccessLevel": "guest" } } }
        }
        """
    static let outputs = """
        {
          "version": "1.4",
          "auth": {
            "aws_region": "eu-west-1", "user_pool_id": "eu-west-1_AbCdEf", "user_pool_client_id": "client",
            "identity_pool_id": "eu-west-1:00000000-1111-2222-3333-444444444444", "mfa_configuration": "NONE" },
          "data": {
            "url": "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql", "aws_region": "eu-west-1",
            "api_key": "da2-secret", "default_authorization_type": "API_KEY", "authorization_types": ["AWS_IAM"],
            "model_introspection": { "version": 1 } },
          "storage": { "aws_region": "eu-west-1", "bucket_name": "media", "buckets": [] },
          "custom": { "anything": [1] }
        }
        """
    static let own = """
        {
          "larder": 1,
          "environments": {
            "staging": {
              "api": { "url": "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql", "region": "eu-west-1" },
              "userPool": { "id": "eu-west-1_AbCdEf", "clientID": "client", "region": "eu-west-1" },
              "identityPool": {
                "id": "eu-west-1:00000000-1111-2222-3333-444444444444", "region": "eu-west-1" },
              "bucket": { "name": "media", "region": "eu-west-1" },
              "apiKey": "da2-secret", "succeeds": "prototype", "protected": true
            },
            "local": { "api": { "url": "http://localhost:4000/graphql" }, "succeedsUnnamed": true }
          }
        }
        """

    /// What all of them describe.
    static func environment(_ name: String) throws -> BackendEnvironment {
        BackendEnvironment(
            name: name,
            api: .init(
                url: try #require(URL(string: "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql")),
                region: "eu-west-1"),
            userPool: .init(id: "eu-west-1_AbCdEf", clientID: "client", region: "eu-west-1"),
            identityPool: .init(id: "eu-west-1:00000000-1111-2222-3333-444444444444", region: "eu-west-1"),
            bucket: .init(name: "media", region: "eu-west-1"), apiKey: "da2-secret")
    }
}

func configuration(_ text: String) throws -> ConfigurationFile {
    try ConfigurationFile(json: Array(text.utf8), origin: "file.json")
}

@Suite("Configuration files", .timeLimit(.minutes(10)))
struct ConfigurationFileTests {
    @Test(
        "Files of AWS's tools are recognized and read, whatever they are called",
        arguments: ["file.json", "awsconfiguration.json", "amplify_outputs.json"])
    func written(origin: String) throws {
        for (text, kind) in [
            (WrittenConfiguration.aws, ConfigurationFile.Kind.awsConfiguration),
            (WrittenConfiguration.amplify, .amplifyConfiguration), (WrittenConfiguration.outputs, .amplifyOutputs),
        ] {
            let file = try ConfigurationFile(json: Array(text.utf8), origin: origin)
            #expect(file.kind == kind)
            #expect(file.environmentNames.isEmpty)
            var expected = try WrittenConfiguration.environment("staging")
            expected.authorization = .apiKey
            if kind == .awsConfiguration { expected.clientSecret = "very-secret" }
            #expect(try file.environment(named: "staging") == expected)
        }
    }

    @Test("How an API is authorized is one of AppSync's names for it")
    func authorization() throws {
        let aws = try configuration(WrittenConfiguration.aws)
        #expect(try aws.environment(named: "a", api: "Other").authorization == .userPool)
        for mode in BackendEnvironment.Authorization.allCases {
            let text = WrittenConfiguration.outputs.replacing("API_KEY", with: mode.rawValue)
            #expect(try configuration(text).environment(named: "a").authorization == mode)
        }
        let error = #expect(throws: LarderError.self) {
            try configuration(WrittenConfiguration.outputs.replacing("API_KEY", with: "MAGIC")).environment(named: "a")
        }
        #expect(error?.message.contains("data.default_authorization_type") == true)
    }

    @Test("An API is chosen by name; awsconfiguration.json's own choice is Default")
    func choice() throws {
        let aws = try configuration(WrittenConfiguration.aws)
        #expect(try aws.apiNames() == ["Default", "Other"])
        let other = try aws.environment(named: "a", api: "Other")
        #expect(other.api.url.host() == "def.appsync-api.eu-west-1.amazonaws.com")
        #expect(other.apiKey == nil)
        #expect(try configuration(WrittenConfiguration.amplify).apiNames() == ["movies"], "what is REST is no choice")
        let two = WrittenConfiguration.amplify.replacingOccurrences(of: "\"REST\"", with: "\"GraphQL\"")
        #expect(try configuration(two).environment(named: "a", api: "movies").apiKey == "da2-secret")
        let error = #expect(throws: LarderError.self) { try configuration(two).environment(named: "a") }
        #expect(error?.code == .environment)
        #expect(
            error?.message
                == "file.json: api: there are several GraphQL APIs (admin, movies); say which one is meant")
    }

    @Test("Of many names a message has the first ones, with what cannot be seen written out")
    func manyNames() throws {
        let apis = (0..<5_000).map { #""a\#($0)\u001b": {"ApiUrl": "https://e.example/g"}"# }.joined(separator: ",")
        let file = try configuration(#"{"Version": "1.0", "AppSync": {\#(apis)}}"#)
        for choice in [nil, "none"] {
            let error = #expect(throws: LarderError.self) { try file.environment(named: "a", api: choice) }
            let message = error?.message ?? ""
            #expect(message.contains(" and 4980 more") && message.utf8.count < 2_000, "\(message.prefix(200))")
            #expect(!message.contains("\u{1b}"))
        }
    }

    @Test("Larder's own file has several environments, with what each succeeds and whether it is protected")
    func own() throws {
        let file = try configuration(WrittenConfiguration.own)
        #expect(file.environmentNames == ["local", "staging"])
        var staging = try WrittenConfiguration.environment("staging")
        staging.predecessor = .environment("prototype")
        staging.isProtected = true
        #expect(try file.environment(named: "staging") == staging)
        let local = try file.environment(named: "local")
        #expect(local.predecessor == .unnamed && !local.isProtected && local.userPool == nil && local.apiKey == nil)
        let error = #expect(throws: LarderError.self) { try file.environment(named: nil) }
        #expect(error?.message == "file.json: environments: there are several (local, staging); say which one is meant")
        let one = #"{"larder":1,"environments":{"a.b":{"api":{"url":"https://x.example"}}},"$schema":"s"}"#
        #expect(try configuration(one).environment(named: nil).name == "a.b")
        let other = #expect(throws: LarderError.self) { try configuration(one).environment(named: "c") }
        #expect(other?.message.contains(#"there is no "c""#) == true)
    }

    @Test("An environment whose file says false of succeedsUnnamed and of protected has neither")
    func denied() throws {
        let text = WrittenConfiguration.own.replacing(
            #""succeedsUnnamed": true"#, with: #""succeedsUnnamed": false, "protected": false"#)
        let local = try configuration(text).environment(named: "local")
        #expect(local.predecessor == nil && !local.isProtected)
    }

    @Test("Larder's own file may hold what other tools read beside it")
    func beside() throws {
        let text = WrittenConfiguration.own.replacing(
            #""larder": 1"#, with: #""larder": 1, "AppSync": {}, "CognitoUserPool": {}"#)
        let (alone, beside) = (try configuration(WrittenConfiguration.own), try configuration(text))
        #expect(beside.kind == .larder && beside.environmentNames == alone.environmentNames)
        #expect(try beside.environment(named: "staging") == alone.environment(named: "staging"))
    }

    @Test("An environment, an API or a project that is null is none")
    func null() throws {
        let own = try configuration(
            #"{"larder":1,"environments":{"old":null,"new":{"api":{"url":"https://x.example"}}}}"#)
        #expect(own.environmentNames == ["new"])
        #expect(try own.environment(named: nil).name == "new")
        let api = #"{"ApiUrl":"https://x.example/g","Region":"eu-west-1"}"#
        let aws = try configuration(#"{"Version":"1.0","AppSync":{"Old":null,"Main":\#(api)}}"#)
        #expect(try aws.apiNames() == ["Main"])
        #expect(try aws.environment(named: "e").api.url.host() == "x.example")
    }

    @Test("A file is read by its URL, with a byte order mark or without")
    func fromDisk() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "amplify_outputs.json")
            try Data([0xEF, 0xBB, 0xBF] + Array(WrittenConfiguration.outputs.utf8)).write(to: file)
            var expected = try WrittenConfiguration.environment("x")
            expected.authorization = .apiKey
            #expect(try BackendEnvironment.read(contentsOf: file, name: "x") == expected)
        }
    }

    @Test("A file on disk with several APIs gives the one that the caller names")
    func namedOnDisk() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "awsconfiguration.json")
            try Data(WrittenConfiguration.aws.utf8).write(to: file)
            let other = try BackendEnvironment.read(contentsOf: file, name: "x", api: "Other")
            #expect(other.api.url.host() == "def.appsync-api.eu-west-1.amazonaws.com")
        }
    }

    @Test("A missing file, a folder, a pipe and a huge file are errors that name them, and none is waited for")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let huge = folder.appending(path: "huge.json")
            try Data().write(to: huge)
            let handle = try FileHandle(forWritingTo: huge)
            try handle.truncate(atOffset: 17 << 20)
            try handle.close()
            let pipe = folder.appending(path: "pipe.json")
            #expect(mkfifo(pipe.path, 0o600) == 0)
            for file in [huge, pipe, folder, folder.appending(path: "none.json"), folder.appending(path: "a/b")] {
                let error = #expect(throws: LarderError.self) { try ConfigurationFile(contentsOf: file) }
                #expect(error?.code == .environment)
                #expect(error?.message.contains(file.path) == true)
            }
            let elsewhere = try #require(URL(string: "https://x.example/larder.json"))
            #expect(throws: LarderError.self) { try ConfigurationFile(contentsOf: elsewhere) }
        }
    }

    @Test("A file of 16 MiB is read, and one of a byte more is none")
    func largest() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "larder.json")
            for (size, said) in [(1 << 24, "in line 1"), ((1 << 24) + 1, "more than 16 MiB")] {
                try Data().write(to: file)
                let handle = try FileHandle(forWritingTo: file)
                try handle.truncate(atOffset: UInt64(size))
                try handle.close()
                for read in [
                    { try ConfigurationFile(contentsOf: file) },
                    { try ConfigurationFile(json: [UInt8](repeating: 0, count: size), origin: "file.json") },
                ] {
                    let error = #expect(throws: LarderError.self) { try read() }
                    #expect(error?.message.contains(said) == true, "\(error?.message ?? "")")
                }
            }
        }
    }

    @Test(
        "A file that the disk or its rights withhold is an error that says what to look after",
        arguments: [(EIO, "check the volume"), (EACCES, "give access to it")])
    func withheld(status: Int32, remedy: String) async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "larder.json")
            try Data("{}".utf8).write(to: file)
            for kind in [FileCall.Kind.open, .read] {
                let files = FileSystem(injecting: { $0.kind == kind ? .failure(status) : nil })
                let error = #expect(throws: LarderError.self) { try ConfigurationFile(contentsOf: file, in: files) }
                #expect(error?.code == .environment)
                #expect(error?.message.contains(remedy) == true, "\(error?.message ?? "")")
            }
        }
    }

    @Test("Text that is not JSON, or none of the kinds, or of two kinds at once, is an error that says so")
    func unrecognized() throws {
        for (text, expected) in [
            ("", "in line 1"), ("{\n\"AppSync\": nope}", "in line 2"), ("[]", "an object is expected"),
            ("{}", "neither"), (#"{"version":"1"}"#, "neither"), (#"{"AppSync":1,"AppSync":2}"#, "same key twice"),
            (#"{"AppSync":{},"version":"1","data":{}}"#, "awsconfiguration.json and amplify_outputs.json"),
            (String(repeating: "[", count: 100_000), "nested too deep"), ("\u{0}", "cannot stand here"),
        ] {
            let error = #expect(throws: LarderError.self, "\(text.prefix(60))") { try configuration(text) }
            #expect(error?.code == .environment)
            #expect(error?.message.hasPrefix("file.json: ") == true)
            #expect(error?.message.contains(expected) == true, "\(error?.message ?? "") has no \(expected)")
        }
    }

    /// A replacement in what the tools write, and how the message begins after the file's name.
    static let faults: [(file: String, from: String, to: String, message: String)] = [
        (WrittenConfiguration.aws, #""AppSync": {"#, #""Appsync": {"#, "AppSync: this is missing"),
        (
            WrittenConfiguration.aws, #""ApiUrl": "https://abc"#, #""ApiUri": "https://abc"#,
            "AppSync.Default.ApiUrl: this is missing"
        ),
        (
            WrittenConfiguration.aws, #""ApiKey": "da2-secret""#, #""ApiKey": 7"#,
            "AppSync.Default.ApiKey: this is a number"
        ),
        (
            WrittenConfiguration.aws, #""ApiKey": "da2-secret""#, #""ApiKey": """#,
            "AppSync.Default.ApiKey: this is empty"
        ),
        (
            WrittenConfiguration.aws, #""Region": "eu-west-1" } } },"#, #""Region": ["eu-west-1"] } } },"#,
            "CredentialsProvider.CognitoIdentity.Default.Region: this is a list"
        ),
        (
            WrittenConfiguration.aws, #""S3TransferUtility": { "Default": { "Bucket": "media""#,
            #""S3TransferUtility": { "Default": { "Bucket": null"#,
            "S3TransferUtility.Default.Bucket: this is missing"
        ),
        (
            WrittenConfiguration.aws, #""CognitoUserPool": { "Default": {"#,
            #""CognitoUserPool": { "b": {}, "a": {"#, "CognitoUserPool: there are several (a, b)"
        ),
        (
            WrittenConfiguration.aws, "\"AppSync\": {\n    \"Default\"", "\"AppSync\": {\n    \"Main\"",
            "AppSync: there are several (Main, Other), and none is named Default; say which API is meant"
        ),
        (
            WrittenConfiguration.aws, "eu-west-1_AbCdEf", "us-east-1_AbCdEf",
            "Environment e: the user pool \"us-east-1_AbCdEf\" is not in the region \"eu-west-1\""
        ),
        (
            WrittenConfiguration.aws, "https://abc.appsync-api.eu-west-1", "https://abc.appsync-api.us-east-1",
            "Environment e: the API's URL"
        ),
        (
            WrittenConfiguration.aws, "https://abc.", "https://me:pw@abc.",
            "Environment e: the API's URL has a user or a password in it"
        ),
        (
            WrittenConfiguration.aws, "https://abc.appsync-api.eu-west-1.amazonaws.com/graphql", "http s://%%",
            "AppSync.Default.ApiUrl: this is no URL"
        ),
        (
            WrittenConfiguration.amplify, #""endpointType": "GraphQL""#, #""endpointType": "Graphql""#,
            "api.plugins.awsAPIPlugin.movies.endpointType: this is neither"
        ),
        (
            WrittenConfiguration.amplify, #""endpointType": "GraphQL""#, #""endpointType": "REST""#,
            "api: no GraphQL API is here"
        ),
        (
            WrittenConfiguration.amplify, #""awsAPIPlugin": {"#, #""awsAPIPlugin": [], "x": {"#,
            "api.plugins.awsAPIPlugin: this is a list"
        ),
        (
            WrittenConfiguration.amplify, #""AppClientId": "client","#, "",
            "auth.plugins.awsCognitoAuthPlugin.CognitoUserPool.Default.AppClientId: this is missing"
        ),
        (
            WrittenConfiguration.amplify, #""bucket": "media","#, "",
            "storage.plugins.awsS3StoragePlugin.bucket: this is missing"
        ),
        (WrittenConfiguration.outputs, #""version": "1.4""#, #""version": "2""#, "version: version 1 is known"),
        (WrittenConfiguration.outputs, #""version": "1.4""#, #""version": "10.4""#, "version: version 1 is known"),
        (WrittenConfiguration.outputs, #""version": "1.4""#, #""version": 1"#, "version: this is a number"),
        (WrittenConfiguration.outputs, #""data": {"#, #""date": {"#, "data: this is missing"),
        (
            WrittenConfiguration.outputs, #""user_pool_client_id": "client","#, "",
            "auth.user_pool_client_id: this is missing"
        ),
        (
            WrittenConfiguration.outputs, #""bucket_name": "media""#, #""bucket": "media""#,
            "storage.bucket_name: this is missing"
        ),
        (WrittenConfiguration.own, #""larder": 1"#, #""larder": 2"#, "larder: version 1 is known"),
        (WrittenConfiguration.own, #""larder": 1"#, #""larder": "1""#, "larder: version 1 is known"),
        (WrittenConfiguration.own, #""environments""#, #""environment""#, "environments: no environment is here"),
        (WrittenConfiguration.own, #""staging""#, #""e""#, ""),
        (WrittenConfiguration.own, #""staging""#, #""e": {}, "x""#, "environments.e.api: this is missing"),
    ]

    @Test(
        "A member that is missing, of another type or contradicts another is named with its place",
        arguments: 0..<faults.count)
    func faulty(_ index: Int) throws {
        let fault = Self.faults[index]
        let text = fault.file.replacingOccurrences(of: fault.from, with: fault.to)
        #expect(text != fault.file)
        guard !fault.message.isEmpty else {
            #expect(try configuration(text).environment(named: "e").name == "e")
            return
        }
        let error = #expect(throws: LarderError.self) { try configuration(text).environment(named: "e") }
        #expect(error?.code == .environment)
        #expect(
            error?.message.hasPrefix("file.json: \(fault.message)") == true,
            "\(error?.message ?? "") / \(fault.message)")
        #expect(error.map { !"\($0)".contains("secret") && !"\($0)".contains("pw@") } == true)
    }

    @Test("In an environment of Larder's own file a member that is not known is an error")
    func misspelt() throws {
        for (from, to, path) in [
            (#""protected""#, #""protcted""#, "environments.staging.protcted"),
            (#""clientID""#, #""clientId""#, "environments.staging.userPool.clientId"),
            (#""id": "eu-west-1:"#, #""role": 1, "id": "eu-west-1:"#, "environments.staging.identityPool.role"),
            (#""name": "media""#, #""acl": 1, "name": "media""#, "environments.staging.bucket.acl"),
            (#""url": "https://abc"#, #""key": 1, "url": "https://abc"#, "environments.staging.api.key"),
        ] {
            let text = WrittenConfiguration.own.replacingOccurrences(of: from, with: to)
            let error = #expect(throws: LarderError.self) { try configuration(text).environment(named: "staging") }
            #expect(error?.message.hasPrefix("file.json: \(path): this is not known") == true)
        }
        let both = WrittenConfiguration.own.replacingOccurrences(
            of: #""protected": true"#, with: #""succeedsUnnamed": true"#)
        let error = #expect(throws: LarderError.self) { try configuration(both).environment(named: "staging") }
        #expect(error?.message.contains("environments.staging.succeedsUnnamed: this and succeeds") == true)
    }

    @Test("A choice that is not there is an error that lists those that are")
    func unknownChoice() throws {
        for (text, name, api, expected) in [
            (WrittenConfiguration.aws, "e", "Nope", #"named "Nope"; there is "Default", "Other""#),
            (WrittenConfiguration.amplify, "e", "admin", #"there is "movies""#),
            (WrittenConfiguration.outputs, "e", "Default", "name none"),
            (WrittenConfiguration.own, "staging", "Default", "name none"),
            (WrittenConfiguration.own, "production", nil, #"there is "local", "staging""#),
            (WrittenConfiguration.aws, nil, nil, "say what to call it"),
            (WrittenConfiguration.aws, "../x", nil, "cannot be named"),
        ] as [(String, String?, String?, String)] {
            let error = #expect(throws: LarderError.self) { try configuration(text).environment(named: name, api: api) }
            #expect(error?.code == .environment)
            #expect(error?.message.contains(expected) == true, "\(error?.message ?? "") has no \(expected)")
        }
    }

    @Test("Neither a client's secret nor an API key is printed, or part of what a store keeps")
    func secrets() throws {
        let file = try configuration(WrittenConfiguration.aws)
        var dumped = ""
        dump(file, to: &dumped)
        let environment = try file.environment(named: "e")
        for text in [dumped, "\(file)", "\(environment)", String(decoding: environment.definition, as: UTF8.self)] {
            #expect(!text.contains("secret"))
        }
        var kept = ""
        dump(file.root, to: &kept)
        #expect(!kept.contains("very-secret"))
        #expect(environment.clientSecret == "very-secret")
        let own = WrittenConfiguration.own.replacing(
            #""apiKey": "da2-secret""#, with: #""apiKey": "da2-secret", "clientSecret": "very-secret""#)
        #expect(try configuration(own).environment(named: "staging").clientSecret == "very-secret")
        #expect(try configuration(own).environment(named: "local").clientSecret == nil)
    }
}
