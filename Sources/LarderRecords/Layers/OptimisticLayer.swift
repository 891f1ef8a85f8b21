internal import Synchronization

/// What a mutation that has not been answered does to the answers of a cache, and to nothing that is stored.
///
/// What it does may be worked out when somebody reads through it for the first time: a long queue is opened without.
package final class OptimisticLayer: Sendable {
    /// What a layer does.
    package struct Content: Sendable {
        /// A response as the server may give it, stored as that would be.
        package var response: Answer?
        /// Cache keys of objects that are no more; those that are not in the cache are passed over.
        package var removals: [String]
        /// What becomes of lists, after all else.
        package var edits: [ListEdit]

        package init(response: Answer? = nil, removals: [String] = [], edits: [ListEdit] = []) {
            self.response = response
            self.removals = removals
            self.edits = edits
        }
    }

    package struct Answer: Sendable {
        package let operation: BoundOperation
        package let parsed: ParsedResponse
        package let root: RecordCache.Root

        package init(_ parsed: ParsedResponse, of operation: BoundOperation, to root: RecordCache.Root = .query) {
            self.operation = operation
            self.parsed = parsed
            self.root = root
        }
    }

    private enum Reading {
        case unread(@Sendable () throws(RecordError) -> Content)
        case read(Result<Content, RecordError>)
    }

    /// The mutation's. As soon as a snapshot knows of it, the layer is not seen in that snapshot.
    package let key: AppliedKey
    /// What it can have to do with. Nil where that is not known: it is laid over whatever is read.
    package let touched: TouchedKeys?
    private let reading: Mutex<Reading>

    package init(
        key: AppliedKey, touching touched: TouchedKeys? = nil, response: Answer? = nil, removals: [String] = [],
        edits: [ListEdit] = []
    ) {
        self.key = key
        self.touched = touched
        reading = Mutex(.read(.success(Content(response: response, removals: removals, edits: edits))))
    }

    /// - Parameters:
    ///   - touched: All that the content touches, or nil.
    ///   - content: Called once, when it is needed first. If it throws, the layer is left out.
    package init(
        key: AppliedKey, touching touched: TouchedKeys? = nil,
        content: @escaping @Sendable () throws(RecordError) -> Content
    ) {
        self.key = key
        self.touched = touched
        reading = Mutex(.unread(content))
    }

    var content: Content {
        get throws(RecordError) {
            let result = reading.withLock { reading in
                if case .unread(let read) = reading {
                    do throws(RecordError) { reading = .read(.success(try read())) } catch {
                        reading = .read(.failure(error))
                    }
                }
                guard case .read(let result) = reading else { return Result<Content, RecordError>.success(Content()) }
                return result
            }
            return try result.get()
        }
    }
}

/// Why a layer is left out.
package struct LayerFailure: Sendable {
    package let key: AppliedKey
    package let error: RecordError
}
