import LarderOperations
import LarderRecords

/// What queued mutations show, read from the queue when it is to be shown: a long queue is opened without.
final class QueuedContents: LayerSource {
    private let queue: MutationQueue
    private let operations: OperationCache

    init(_ queue: MutationQueue, _ operations: OperationCache) {
        self.queue = queue
        self.operations = operations
    }

    func contents(of layers: [OptimisticLayer]) throws(RecordError) -> [LayerFinding] {
        let expectations: [Expectation]
        do throws(OperationsError) { expectations = try queue.expectations(of: layers.map(\.number)) } catch {
            throw RecordError(
                error.code == .closed ? .closed : .storage,
                "The queued mutations cannot be read, and so not be shown: \(error.message)", cause: error)
        }
        let found = Dictionary(expectations.map { ($0.sequence, $0) }) { $1 }
        return layers.map { layer in
            guard let expectation = found[layer.number], let content = expectation.content, content.isShown else {
                return .gone
            }
            let reading = operations.reading(content, of: expectation.id)
            // A caller that changes what a mutation shows also removes what is known of it.
            let isSame =
                expectation.touched != nil && expectation.idempotencyKey == layer.key.text
                && operations.touched(expectation) == layer.touched
            return isSame ? .same(reading) : .changed(reading)
        }
    }
}
