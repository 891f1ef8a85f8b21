internal import Foundation
internal import LarderOperations

extension BackendEnvironment {
    /// As it is stored.
    var draft: EnvironmentDraft {
        get throws(LarderError) {
            struct Definition: Encodable {
                var api: API
                var userPool: UserPool?
                var identityPool: IdentityPool?
                var bucket: Bucket?
            }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            let definition: Data
            do {
                definition = try encoder.encode(
                    Definition(api: api, userPool: userPool, identityPool: identityPool, bucket: bucket))
            } catch { throw LarderError(.environment, "the environment \(name) cannot be stored", cause: error) }
            return EnvironmentDraft(
                name: name, definition: Array(definition), fingerprints: fingerprints,
                predecessor: predecessor.map { predecessor in
                    switch predecessor {
                    case .environment(let name): .environment(name)
                    case .unnamed: .unnamed
                    }
                }, isProtected: isProtected)
        }
    }
}
