import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization
import Testing

/// The states that a flow gives to its readers.
extension ScriptedFlowTests {
    /// Waits until other tasks have brought something about, for a minute at most.
    private func wait(until isSo: () -> Bool) async throws {
        for _ in 0..<30_000 where !isSo() { try await Task.sleep(for: .milliseconds(2)) }
    }

    @Test("Readers of a flow's states see fields that are refused, and the server's refusal")
    func toldOfRefusals() async throws {
        try await withFlow([:]) { (flow, _, script) async throws in
            script.fail("InitiateAuth", "NotAuthorizedException", "no")
            let told = Mutex<SignInState?>(nil)
            let following = Task { for await state in flow.states { told.withLock { $0 = state } } }
            defer { following.cancel() }
            try await wait { told.withLock { $0 != nil } }
            await flow.perform(.submit)
            try await wait { told.withLock { $0?.refusedFields.isEmpty == false } }
            #expect(told.withLock { $0?.refusedFields } == ["name", "password"])
            await flow.perform(.submit, ["name": "ann", "password": "word"])
            try await wait { told.withLock { $0?.failure?.code.rawValue == "cognito.wrongCredentials" } }
            #expect(told.withLock { $0?.failure?.code.rawValue } == "cognito.wrongCredentials")
            #expect(told.withLock { $0?.isWorking } == false)
        }
    }

    @Test("Readers of a flow's states see that nothing can be cancelled while the credentials are stored")
    func toldOfStoring() async throws {
        let keys = InMemoryKeyProvider(behaviour: .hanging)
        try await withFlow(["InitiateAuth": try CognitoScript.result()], keys: keys) { (flow, _, _) async throws in
            let told = Mutex<SignInState?>(nil)
            let following = Task { for await state in flow.states { told.withLock { $0 = state } } }
            defer { following.cancel() }
            try await wait { told.withLock { $0 != nil } }
            let working = Task { await flow.perform(.submit, ["name": "ann", "password": "word"]) }
            try await wait { told.withLock { $0?.actions.isEmpty == true } }
            #expect(told.withLock { $0?.actions } == [])
            #expect(told.withLock { $0?.isWorking } == true)
            keys.behaviour = .ready
            await working.value
            #expect(flow.state.step == .done)
        }
    }
}
