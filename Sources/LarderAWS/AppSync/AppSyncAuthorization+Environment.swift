import Larder

extension AppSyncAuthorization {
    /// What an environment says, with what gives the proofs.
    init(
        _ mode: BackendEnvironment.Authorization?, of environment: BackendEnvironment,
        session: @escaping @Sendable () throws -> Session, tokens: Source<String>?
    ) throws(LarderError) {
        func fault(_ what: String) -> LarderError {
            LarderError(.environment, "Environment \(environment.name): \(what)")
        }
        func required<Value>(_ value: Value?, _ what: String) throws(LarderError) -> Value {
            guard let value else { throw fault(what) }
            return value
        }
        let mode = try required(mode ?? environment.likelyAuthorization, "it does not say how its API is authorized")
        switch mode {
        case .apiKey:
            self = .apiKey(try required(environment.apiKey, "its API wants a key, and it has none"))
        case .iam:
            let region = try required(
                environment.api.region ?? AppSyncEndpoint.region(of: environment.api.url),
                "its API wants signed requests, and neither the API nor its URL says the region")
            self = .iam(region: region, try session())
        case .userPool:
            self = .userPool(try session())
        case .openIDConnect:
            self = .openIDConnect(
                try required(tokens, "its API wants another provider's token; give what gets them"))
        case .lambda:
            self = .lambda(try required(tokens, "its API wants a token for a Lambda function; give what gets them"))
        }
    }
}

extension BackendEnvironment {
    fileprivate var likelyAuthorization: Authorization? {
        if let authorization { return authorization }
        if apiKey != nil { return .apiKey }
        if userPool != nil { return .userPool }
        return identityPool == nil ? nil : .iam
    }
}
