import LarderFiles

/// What a mutation that has not been answered does to the answers of a cache, and to nothing that is stored.
///
/// What it does may be worked out at the first read through it: a long queue opens without that work.
package final class OptimisticLayer: Sendable {
    /// What a layer does.
    package struct Content: Sendable {
        /// A response as the server may give it, stored as that would be.
        package var response: Answer?
        /// Cache keys of objects that are no more; keys that are not in the cache are passed over.
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
        case unfetched(any LayerSource)
        case unread(@Sendable () throws(RecordError) -> Content)
        case read(Result<Content, RecordError>)
    }

    /// The mutation's. As soon as a snapshot knows of it, the layer is not seen in that snapshot.
    package let key: AppliedKey
    /// What it can have to do with. Nil where that is not known: it is laid over whatever is read.
    package let touched: TouchedKeys?
    /// By which its source knows it; 0 where it has none.
    package let number: Int64
    private let reading: Locked<Reading>

    package init(
        key: AppliedKey, touching touched: TouchedKeys? = nil, response: Answer? = nil, removals: [String] = [],
        edits: [ListEdit] = []
    ) {
        self.key = key
        self.touched = touched
        number = 0
        reading = Locked(.read(.success(Content(response: response, removals: removals, edits: edits))))
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
        number = 0
        reading = Locked(.unread(content))
    }

    /// - Parameters:
    ///   - touched: All that the content touches, or nil.
    ///   - number: By which the source knows it.
    ///   - source: Asked for the content when it is needed first.
    package init(key: AppliedKey, touching touched: TouchedKeys?, number: Int64, of source: any LayerSource) {
        self.key = key
        self.touched = touched
        self.number = number
        reading = Locked(.unfetched(source))
    }

    /// Gets what the layers do from where it is kept, for the layers that do not have it yet.
    ///
    /// - Returns: False if some are others than was known of them, or are no more.
    static func fetch(_ layers: [OptimisticLayer]) throws(RecordError) -> Bool {
        var isAsKnown = true
        // Asked once: other readers fetch some of them meanwhile.
        var rest = layers.compactMap { layer in layer.source.map { (layer: layer, source: $0) } }
        while let source = rest.first?.source {
            let own = rest.filter { $0.source === source }.map(\.layer)
            let findings = try source.contents(of: own)
            for (index, layer) in own.enumerated() {
                let finding = index < findings.count ? findings[index] : .gone
                if case .same = finding {} else { isAsKnown = false }
                layer.take(finding)
            }
            rest.removeAll { $0.source === source }
        }
        return isAsKnown
    }

    private var source: (any LayerSource)? {
        reading.withLock { reading in
            if case .unfetched(let source) = reading { source } else { nil }
        }
    }

    private func take(_ finding: LayerFinding) {
        reading.withLock { reading in
            // Another reader may have been quicker.
            guard case .unfetched = reading else { return }
            switch finding {
            case .same(let content), .changed(let content): reading = .unread(content)
            case .gone: reading = .read(.success(Content()))
            }
        }
    }

    var content: Content {
        get throws(RecordError) {
            let result = reading.withLock { reading in
                if case .unread(let read) = reading {
                    do throws(RecordError) { reading = .read(.success(try read())) } catch {
                        reading = .read(.failure(error))
                    }
                }
                // The content was fetched before the layer is laid.
                guard case .read(let result) = reading else { return Result<Content, RecordError>.success(Content()) }
                return result
            }
            return try result.get()
        }
    }
}

extension OptimisticLayer.Content {
    /// Calls `body` with the cache keys of the objects that the content reads or writes; with some of them several
    /// times.
    ///
    /// Safe: the text or the response in which a key lies is kept for the length of the call of `body`.
    func forEachKey(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        func tell(_ key: String) throws {
            var key = key
            try key.withUTF8 { unsafe try body(UnsafeRawBufferPointer($0)) }
        }
        if let answer = response {
            let parsed = answer.parsed
            for object in parsed.objects.indices where !parsed.isPart(object) {
                unsafe try body(parsed.key(of: object))
            }
            if case .record(let key) = ResponseWriter.Root(answer.root, answer.operation) { try tell(key) }
        }
        for key in removals { try tell(key) }
        for edit in edits {
            try tell(edit.owner.key)
            switch edit.action {
            case .remove(let key), .insert(let key, _): try tell(key)
            }
        }
    }
}

/// Why a layer is left out.
package struct LayerFailure: Sendable {
    package let key: AppliedKey
    package let error: RecordError
}
