import ArgumentParser

/// What becomes of mutations that the server may not have.
package enum UnsentWork: String, ExpressibleByArgument, CaseIterable {
    case refuse, keep, discard
}
