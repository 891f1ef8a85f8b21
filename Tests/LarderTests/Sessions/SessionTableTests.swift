import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The states of a session")
struct SessionTableTests {
    /// What the article says: rows are states, columns are events in the order of their declaration, `-` is no event.
    private static let table: [SessionState: [String]] = [
        .unknown: ["signedIn", "guest", "-", "unknown", "-", "-", "-", "signedOut"],
        .guest: ["signedIn", "guest", "guest", "guest", "-", "federatedTokensInvalid", "signedOut", "signedOut"],
        .signedIn: [
            "signedIn", "-", "signedIn", "signedIn", "userPoolTokensInvalid", "federatedTokensInvalid", "signedOut",
            "signedOut",
        ],
        .signedOut: ["signedIn", "guest", "-", "signedOut", "-", "-", "-", "signedOut"],
        .userPoolTokensInvalid: [
            "signedIn", "-", "-", "userPoolTokensInvalid", "-", "-", "signedOut", "signedOut",
        ],
        .federatedTokensInvalid: [
            "signedIn", "guest", "-", "federatedTokensInvalid", "userPoolTokensInvalid", "-", "signedOut", "signedOut",
        ],
    ]

    @Test("Every event in every state leads where the table says", arguments: SessionState.allCases)
    func transitions(_ state: SessionState) throws {
        let row = try #require(Self.table[state])
        #expect(SessionEvent.allCases.map { state.after($0)?.rawValue ?? "-" } == row)
    }

    @Test("The article has the same table")
    func article() throws {
        let text = try String(
            contentsOf: packageRoot.appending(path: "Sources/Larder/Larder.docc/Sessions.md").resolvingSymlinksInPath(),
            encoding: .utf8)
        for state in SessionState.allCases {
            let cells = try #require(Self.table[state]).map { $0 == "-" ? " - " : " `\($0)` " }
            #expect(text.contains("| `\(state.rawValue)` |" + cells.joined(separator: "|") + "|"), "\(state)")
        }
    }

    @Test("Being unreachable changes no state")
    func unreachable() {
        for state in SessionState.allCases { #expect(state.after(.unreachable) == state) }
    }
}
