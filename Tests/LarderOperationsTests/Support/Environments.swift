import Foundation

@testable import LarderOperations

func environment(
    _ name: String, identity: String = "i", data: String? = nil, storage: String = "s",
    succeeds predecessor: EnvironmentDraft.Predecessor? = nil, isProtected: Bool = false
) -> Destination.Environment {
    .draft(
        EnvironmentDraft(
            name: name, definition: json(#"{"name":"\#(name)"}"#),
            fingerprints: Fingerprints(identity: identity, data: data ?? "data of \(name)", storage: storage),
            predecessor: predecessor, isProtected: isProtected))
}

extension OperationsDatabase {
    @discardableResult
    func enter(
        _ environment: Destination.Environment, _ user: Destination.User = .guest, as name: String,
        leaving work: PendingWork? = .park, at now: Date = noon
    ) async throws -> SwitchReport {
        try await environments.enter(
            Destination(environment: environment, user: user, newName: name), leaving: work, now: now)
    }

    var currentName: String? { get throws { try environments.current()?.partition?.name } }
}
