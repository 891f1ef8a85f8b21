/// What an environment is, in the three respects in which something can belong to it: SHA-256 in hexadecimal, each.
package struct Fingerprints: Sendable, Hashable {
    /// Who signs users in: credentials belong to it.
    package var identity: String
    /// Where the API is: caches and mutations belong to it.
    package var data: String
    /// Where files are kept: transfers belong to it.
    package var storage: String

    package init(identity: String, data: String, storage: String) {
        self.identity = identity
        self.data = data
        self.storage = storage
    }
}
