import ArgumentParser

/// A state of a mutation or a transfer, by its name.
struct StateName<State: CaseIterable & CustomStringConvertible>: ExpressibleByArgument {
    let state: State

    init?(argument: String) {
        guard let state = State.allCases.first(where: { $0.description == argument }) else { return nil }
        self.state = state
    }

    static var allValueStrings: [String] { State.allCases.map(\.description) }
}
