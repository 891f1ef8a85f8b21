// AppSync's SDK and the AWS Mobile SDK read members of these names in `awsconfiguration.json`, Amplify for Swift in the
// other two files.

extension ConfigurationFile {
    func awsConfiguration(_ name: String, _ choice: String?) throws(LarderError) -> BackendEnvironment {
        guard let apis = try root.section("AppSync"), !apis.names.isEmpty else {
            throw root.fault(
                "this is missing, and an environment needs an API; add one and write the file anew", at: "AppSync")
        }
        let section: ConfigurationSection? =
            if let choice { try apis.section(choice) } else { try apis.defaultSection(else: "say which API is meant") }
        guard let section else { throw unknownAPI(choice ?? "", of: apis.names) }
        let bucket = try root.section("S3TransferUtility")?.defaultSection().map { (bucket) throws(LarderError) in
            BackendEnvironment.Bucket(name: try bucket.required("Bucket"), region: try bucket.required("Region"))
        }
        return BackendEnvironment(
            name: name, api: .init(url: try section.url("ApiUrl"), region: try section.required("Region")),
            userPool: try Self.userPool(root), identityPool: try Self.identityPool(root), bucket: bucket,
            apiKey: try section.string("ApiKey"), authorization: try section.authorization("AuthMode"),
            clientSecret: clientSecret, hostedSignIn: try Self.hostedSignIn(root))
    }

    func amplifyConfiguration(_ name: String, _ choice: String?) throws(LarderError) -> BackendEnvironment {
        let apis = try graphQLAPIs()
        guard !apis.isEmpty else {
            throw root.fault(
                "no GraphQL API is here, and an environment needs one; add one and write the file anew", at: "api")
        }
        guard choice != nil || apis.count == 1 else {
            let names = EnvironmentFault.list(apis.map(\.name))
            throw root.fault("there are several GraphQL APIs (\(names)); say which one is meant", at: "api")
        }
        guard let section = apis.first(where: { choice == nil || $0.name == choice })?.section else {
            throw unknownAPI(choice ?? "", of: apis.map(\.name))
        }
        let cognito = try root.section("auth", "plugins", "awsCognitoAuthPlugin")
        let s3 = try root.section("storage", "plugins", "awsS3StoragePlugin").map { (bucket) throws(LarderError) in
            BackendEnvironment.Bucket(name: try bucket.required("bucket"), region: try bucket.required("region"))
        }
        return BackendEnvironment(
            name: name, api: .init(url: try section.url("endpoint"), region: try section.string("region")),
            userPool: try cognito.map(Self.userPool) ?? nil, identityPool: try cognito.map(Self.identityPool) ?? nil,
            bucket: s3, apiKey: try section.string("apiKey"),
            authorization: try section.authorization("authorizationType"),
            clientSecret: clientSecret, hostedSignIn: try cognito.map(Self.hostedSignIn) ?? nil)
    }

    /// The GraphQL APIs of an `amplifyconfiguration.json`.
    func graphQLAPIs() throws(LarderError) -> [(name: String, section: ConfigurationSection)] {
        guard let all = try root.section("api", "plugins", "awsAPIPlugin") else { return [] }
        var found: [(name: String, section: ConfigurationSection)] = []
        for name in all.names {
            guard let section = try all.section(name) else { continue }
            let type = try section.required("endpointType")
            if type == "GraphQL" {
                found.append((name, section))
            } else if type != "REST" {
                throw section.fault("this is neither GraphQL nor REST", at: "endpointType")
            }
        }
        return found
    }

    func amplifyOutputs(_ name: String, _ choice: String?) throws(LarderError) -> BackendEnvironment {
        let version = try root.required("version")
        guard version == "1" || version.hasPrefix("1.") else {
            throw root.fault(
                "version 1 is known, and this is \(EnvironmentFault.shown(version)); write the file as version 1, or "
                    + "use a newer Larder", at: "version")
        }
        guard choice == nil else { throw root.fault("this kind of file has one API, and it has no name; name none") }
        guard let data = try root.section("data") else {
            throw root.fault("this is missing, and an environment needs an API; define one and deploy it", at: "data")
        }
        let auth = try root.section("auth")
        let bucket = try root.section("storage").map { (storage) throws(LarderError) in
            BackendEnvironment.Bucket(
                name: try storage.required("bucket_name"), region: try storage.required("aws_region"))
        }
        return BackendEnvironment(
            name: name, api: .init(url: try data.url("url"), region: try data.required("aws_region")),
            userPool: try auth.map { (auth) throws(LarderError) in
                BackendEnvironment.UserPool(
                    id: try auth.required("user_pool_id"), clientID: try auth.required("user_pool_client_id"),
                    region: try auth.required("aws_region"))
            },
            identityPool: try auth.map { (auth) throws(LarderError) in
                try auth.string("identity_pool_id").map { (id) throws(LarderError) in
                    BackendEnvironment.IdentityPool(id: id, region: try auth.required("aws_region"))
                }
            } ?? nil,
            bucket: bucket, apiKey: try data.string("api_key"),
            authorization: try data.authorization("default_authorization_type"),
            hostedSignIn: try auth?.section("oauth").map { (pages) throws(LarderError) in
                BackendEnvironment.HostedSignIn(
                    domain: try pages.required("domain"), scopes: try pages.strings("scopes"),
                    signInRedirects: try pages.strings("redirect_sign_in_uri"),
                    signOutRedirects: try pages.strings("redirect_sign_out_uri"))
            })
    }

    private static func hostedSignIn(
        _ cognito: ConfigurationSection
    ) throws(LarderError) -> BackendEnvironment.HostedSignIn? {
        try cognito.section("Auth")?.defaultSection()?.section("OAuth").map { (pages) throws(LarderError) in
            BackendEnvironment.HostedSignIn(
                domain: try pages.required("WebDomain"), scopes: try pages.strings("Scopes"),
                signInRedirects: try pages.strings("SignInRedirectURI"),
                signOutRedirects: try pages.strings("SignOutRedirectURI"))
        }
    }

    private static func userPool(_ cognito: ConfigurationSection) throws(LarderError) -> BackendEnvironment.UserPool? {
        try cognito.section("CognitoUserPool")?.defaultSection().map { (pool) throws(LarderError) in
            BackendEnvironment.UserPool(
                id: try pool.required("PoolId"), clientID: try pool.required("AppClientId"),
                region: try pool.required("Region"))
        }
    }

    private static func identityPool(
        _ cognito: ConfigurationSection
    ) throws(LarderError) -> BackendEnvironment.IdentityPool? {
        try cognito.section("CredentialsProvider", "CognitoIdentity")?.defaultSection().map {
            (pool) throws(LarderError) in
            BackendEnvironment.IdentityPool(
                id: try pool.required("PoolId"), region: try pool.required("Region"),
                guestRole: try pool.string("UnauthRoleArn"), userRole: try pool.string("AuthRoleArn"))
        }
    }

    private func unknownAPI(_ name: String, of names: [String]) -> LarderError {
        root.fault(
            "there is no GraphQL API named \(EnvironmentFault.shown(name)); there is "
                + EnvironmentFault.list(names, areQuoted: true))
    }
}
