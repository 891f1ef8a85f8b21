package import Larder

extension Transfer {
    /// Waits until it is done.
    ///
    /// - Throws: Why it failed; `.cancelledTransfer` where it was given up; as `outcome(within:)`.
    @discardableResult
    package func finished(within time: Duration = .seconds(300)) async throws(LarderError) -> TransferStatus {
        switch try await outcome(within: time) {
        case .done(let status): return status
        case .failed(let error): throw error
        case .cancelled: throw LarderError(.cancelledTransfer, "transfer \(id) was given up")
        }
    }
}
