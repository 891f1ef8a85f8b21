public import Foundation

extension Process {
    /// Waits until the program has ended, and gives its thread to others meanwhile: there are only as many as there are
    /// processors, and a test that holds one keeps all the others waiting.
    public func ended() async {
        while isRunning { try? await Task.sleep(for: .milliseconds(2)) }
    }
}
