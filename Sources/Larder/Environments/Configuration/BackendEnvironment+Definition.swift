import Foundation
import LarderGraphQL
import LarderRecords

extension BackendEnvironment {
    /// What a store keeps of it beside its name: JSON, members in ascending order, without the API key. Equal
    /// environments have equal definitions.
    var definition: [UInt8] {
        var members: [String: Value] = [:]
        members["api"] = .object(["url": .string(api.url.absoluteString)].with("region", api.region))
        members["userPool"] = userPool.map {
            ["id": .string($0.id), "clientID": .string($0.clientID), "region": .string($0.region)]
        }
        members["identityPool"] = identityPool.map { ["id": .string($0.id), "region": .string($0.region)] }
        members["bucket"] = bucket.map { ["name": .string($0.name), "region": .string($0.region)] }
        switch predecessor {
        case .environment(let name): members["succeeds"] = .string(name)
        case .unnamed: members["succeedsUnnamed"] = true
        case nil: break
        }
        if isProtected { members["protected"] = true }
        return Value.object(members).json
    }

    /// The environment of a definition that a store kept. Members that another version of the library wrote and this
    /// one does not know are passed over.
    ///
    /// - Throws: `.environment`.
    package init(definition: [UInt8], name: String) throws(LarderError) {
        let origin = "the definition of environment \(EnvironmentFault.shown(name))"
        let value: Value
        do throws(JSONError) { value = try Value(json: definition) } catch {
            throw LarderError(
                .environment, "\(origin) is not JSON: \(error); define the environment anew", cause: error)
        }
        try self.init(ConfigurationSection(value, origin: origin), name: name)
    }

    /// The environment of a definition, or of Larder's own file.
    init(_ section: ConfigurationSection, name: String) throws(LarderError) {
        guard let api = try section.section("api") else {
            throw section.fault(
                "this is missing, and an environment needs an API: {\"url\": \"https://…\"}", at: "api")
        }
        self.init(name: name, api: API(url: try api.url("url"), region: try api.string("region")))
        if let pool = try section.section("userPool") {
            userPool = UserPool(
                id: try pool.required("id"), clientID: try pool.required("clientID"),
                region: try pool.required("region"))
        }
        if let pool = try section.section("identityPool") {
            identityPool = IdentityPool(id: try pool.required("id"), region: try pool.required("region"))
        }
        if let bucket = try section.section("bucket") {
            self.bucket = Bucket(name: try bucket.required("name"), region: try bucket.required("region"))
        }
        predecessor = try section.string("succeeds").map(Predecessor.environment)
        if try section.boolean("succeedsUnnamed") == true {
            guard predecessor == nil else {
                throw section.fault("this and succeeds are said both; leave one of them", at: "succeedsUnnamed")
            }
            predecessor = .unnamed
        }
        isProtected = try section.boolean("protected") ?? false
    }
}

extension [String: Value] {
    fileprivate func with(_ name: String, _ text: String?) -> [String: Value] {
        guard let text else { return self }
        return merging([name: .string(text)]) { _, new in new }
    }
}
