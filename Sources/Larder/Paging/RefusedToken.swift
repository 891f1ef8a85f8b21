import LarderRecords

extension LarderError {
    /// Whether it may mean that the server does not take the token it was given: it is of the field itself, or of the
    /// request, and not of the server's state or of the user.
    var mayBeOfToken: Bool { mayBeOfToken(ofListAt: 1) }

    /// As `mayBeOfToken`, of a list below an object.
    ///
    /// - Parameter depth: How many fields lead from the root to the list's, itself included.
    func mayBeOfToken(ofListAt depth: Int) -> Bool {
        guard code == .serverErrors else { return false }
        if let status = (cause as? TransportError)?.status, ![400, 404, 410, 422].contains(status) { return false }
        return errors.contains { error in
            let kind = error.kind.map(ServerErrorKind.init)
            return (error.path?.components.count ?? 1) <= depth
                && kind != .throttled && kind != .fault && kind != .notSignedIn
        }
    }
}
