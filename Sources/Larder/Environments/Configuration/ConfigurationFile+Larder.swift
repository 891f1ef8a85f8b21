import LarderGraphQL

extension ConfigurationFile {
    /// The version of Larder's own files that this library reads.
    static let version: Int64 = 1

    func ownEnvironment(named name: String?) throws(LarderError) -> BackendEnvironment {
        guard case .int(Self.version)? = root.members["larder"] else {
            throw root.fault(
                "version \(Self.version) is known, as a number; use a newer Larder for a newer file",
                at: "larder")
        }
        guard let environments = try root.section("environments"), !environments.names.isEmpty else {
            throw root.fault("no environment is here; add one", at: "environments")
        }
        let names = environments.names
        guard let name = name ?? (names.count == 1 ? names.first : nil) else {
            throw environments.fault("there are several (\(EnvironmentFault.list(names))); say which one is meant")
        }
        guard let section = try environments.section(name) else {
            throw environments.fault(
                "there is no \(EnvironmentFault.shown(name)); there is "
                    + EnvironmentFault.list(names, areQuoted: true))
        }
        try BackendEnvironment.validate(name: name)
        try section.refuseOthers(
            "api", "apiKey", "authorization", "clientSecret", "userPool", "hostedSignIn", "identityPool", "bucket",
            "succeeds", "succeedsUnnamed", "protected")
        try section.section("api")?.refuseOthers("url", "region")
        try section.section("userPool")?.refuseOthers("id", "clientID", "region")
        try section.section("identityPool")?.refuseOthers("id", "region", "guestRole", "userRole")
        try section.section("hostedSignIn")?.refuseOthers("domain", "scopes", "signInRedirects", "signOutRedirects")
        try section.section("bucket")?.refuseOthers("name", "region")
        var environment = try BackendEnvironment(section, name: name)
        environment.apiKey = try section.string("apiKey")
        environment.authorization = try section.authorization("authorization")
        environment.clientSecret = try section.string("clientSecret")
        environment.hostedSignIn = try section.section("hostedSignIn").map { (pages) throws(LarderError) in
            BackendEnvironment.HostedSignIn(
                domain: try pages.required("domain"), scopes: try pages.strings("scopes"),
                signInRedirects: try pages.strings("signInRedirects"),
                signOutRedirects: try pages.strings("signOutRedirects"))
        }
        let pool = try section.section("identityPool")
        environment.identityPool?.guestRole = try pool?.string("guestRole")
        environment.identityPool?.userRole = try pool?.string("userRole")
        return environment
    }
}

extension ConfigurationSection {
    fileprivate func refuseOthers(_ known: String...) throws(LarderError) {
        guard let other = names.first(where: { !known.contains($0) }) else { return }
        throw fault("this is not known; an environment has \(known.joined(separator: ", ")) here", at: other)
    }
}
