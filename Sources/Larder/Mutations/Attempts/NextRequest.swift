import LarderFiles
import LarderOperations
import LarderRecords

/// What is sent of a mutation.
struct MutationRequest: Sendable {
    let sent: GraphQLRequest
    /// The operation, with which the answer is read.
    let operation: BoundOperation
    /// Whether that is the one in the queue, and has no variable of its own.
    let isAsQueued: Bool
}

/// The request of a lane's next mutation, got ready while the commit that begins it waits for the disk.
final class NextRequest: Sendable {
    typealias Making = @Sendable (Mutation) throws(LarderError) -> MutationRequest

    private let executor: any TaskExecutor
    private let make: Making
    private let expected = Locked<(attempt: Attempt, request: Task<Result<MutationRequest, LarderError>, Never>)?>(nil)

    /// - Parameter executor: Where it is made, beside the thread that waits.
    init(_ executor: any TaskExecutor, _ make: @escaping Making) {
        self.executor = executor
        self.make = make
    }

    /// Begins to make a request; of no use where the mutation is not begun after all.
    func expect(_ mutation: Mutation) {
        let request = Task(executorPreference: executor) { [make] in
            Result { () throws(LarderError) in try make(mutation) }
        }
        expected.withLock { $0 = (mutation.attempt, request) }
    }

    /// The request of a mutation that has begun.
    func of(_ mutation: Mutation) async throws(LarderError) -> MutationRequest {
        let found = expected.withLock { expected in
            defer { expected = nil }
            return expected
        }
        guard let found, found.attempt == mutation.attempt else { return try make(mutation) }
        return try await found.request.value.get()
    }
}
