package import LarderOperations

extension BackendEnvironment {
    /// As it is stored.
    ///
    /// - Throws: `.environment` where it cannot be used.
    package var draft: EnvironmentDraft {
        get throws(LarderError) {
            try validate()
            return EnvironmentDraft(
                name: name, definition: definition, fingerprints: fingerprints,
                predecessor: predecessor.map { predecessor in
                    switch predecessor {
                    case .environment(let name): .environment(name)
                    case .unnamed: .unnamed
                    }
                }, isProtected: isProtected)
        }
    }
}
