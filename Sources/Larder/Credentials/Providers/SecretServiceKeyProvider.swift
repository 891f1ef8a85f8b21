#if os(Linux)
public import Foundation

/// Keys in the Secret Service of a Linux desktop, such as GNOME's keyring or KWallet, by the program `secret-tool` of
/// libsecret. The keys go to it through its standard input and never by its arguments.
///
/// A locked keyring asks its owner for a password, who may be away: the program is killed at the deadline.
public struct SecretServiceKeyProvider: KeyProvider {
    /// Which store's keys they are, of all that are in the keyring.
    package let store: String
    private let program: String
    private let environment: [String: String]

    /// - Parameters:
    ///   - store: A name of the program's own, the same at every start.
    ///   - program: A path, or a name that is looked for in the `PATH` of `environment`.
    ///   - environment: The variables that the program gets.
    public init(
        store: String, program: String = "secret-tool",
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) {
        self.store = store
        self.program = program
        self.environment = environment
    }

    /// The store's name.
    public var description: String { "the Secret Service's keys of \(store)" }

    /// - Throws: `.missing`, `.timedOut` (it may be locked), `.unreadable`, `.unsupported`, `.damaged`, `.foreign`,
    ///   `.newerFormat`.
    public func keys(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        let answer = try await run(["lookup"] + attributes, deadline: deadline)
        guard answer.status == 0 else {
            // The tool writes nothing where there is no key, and the reason where it failed.
            guard answer.complaint.isEmpty, answer.status == 1 else { throw failure(answer, "be read") }
            // It also writes nothing where the keyring is locked and the user does not unlock it; a search finds the
            // key then.
            let search = try await run(["search"] + attributes, deadline: deadline)
            guard search.status == 0 else { throw failure(search, "be read") }
            guard search.output.isEmpty else {
                throw KeyError(.locked, "\(self) are locked; unlock the keyring")
            }
            throw KeyError(.missing, "There are none of \(self)")
        }
        return try KeyText(parsing: answer.output, of: description).keys
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func makeKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        do throws(KeyError) { return try await keys(within: .until(deadline)) } catch {
            guard error.code == .missing else { throw error }
            return try await put(MasterKeys(current: MasterKey()), deadline: deadline)
        }
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func addKey(within time: Duration) async throws(KeyError) -> MasterKeys {
        let deadline = SuspendingClock.now + time
        return try await put(try await keys(within: .until(deadline)).adding(), deadline: deadline)
    }

    /// - Throws: `.notWritable`, and as `keys`.
    public func dropKeys(_ ids: Set<String>, within time: Duration) async throws(KeyError) {
        let deadline = SuspendingClock.now + time
        _ = try await put(try await keys(within: .until(deadline)).dropping(ids), deadline: deadline)
    }

    private var attributes: [String] { ["application", "larder", "store", store] }

    /// An item that has the same attributes is replaced at once.
    private func put(_ keys: MasterKeys, deadline: SuspendingClock.Instant) async throws(KeyError) -> MasterKeys {
        let text = Array(KeyText(keys).text.utf8)
        let answer = try await run(
            ["store", "--label=Larder: \(store)"] + attributes, input: text, deadline: deadline)
        guard answer.status == 0 else {
            let failure = failure(answer, "be written")
            throw KeyError(failure.code == .unreadable ? .notWritable : failure.code, failure.message)
        }
        return keys
    }

    private func run(
        _ arguments: [String], input: [UInt8] = [], deadline: SuspendingClock.Instant
    ) async throws(KeyError) -> ToolRun.Answer {
        try await ToolRun(program: program, arguments: arguments, environment: environment, of: description)
            .answer(to: input, until: deadline)
    }

    private func failure(_ answer: ToolRun.Answer, _ what: String) -> KeyError {
        let complaint = answer.complaint.isEmpty ? "status \(answer.status)" : answer.complaint
        let isLocked = complaint.localizedCaseInsensitiveContains("locked")
        return KeyError(
            isLocked ? .locked : .unreadable,
            "\(self) could not \(what): \(complaint); "
                + (isLocked ? "unlock the keyring" : "start a keyring, or use a key file"))
    }
}
#endif
