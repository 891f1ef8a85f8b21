import LarderGraphQL
import LarderOperations
public import LarderRecords
import Logging

extension Partition {
    /// Answers an operation from where the policy says.
    ///
    /// A server's answer is stored before it is returned, fields that have an error excepted, so that watchers see it
    /// too. With `.cacheAndNetwork` the server's answer is returned; `fetches` gives both.
    ///
    /// - Throws: `.miss` where the cache alone was asked, also where its answer is too old; `.noTransport`,
    ///   `.cancelled` or a code `transport.…` where no answer could be had; `.serverErrors` as the error policy says;
    ///   `.syntax`, `.operation` or `.variables` for what cannot be asked; a code `records.…` where the answer does not
    ///   fit or cannot be stored.
    public func fetch(
        _ operation: GraphQLOperation, policy: FetchPolicy = .cacheFirst, options: FetchOptions = FetchOptions()
    ) async throws(LarderError) -> Response {
        let operation = try core.withRealIDs(operation)
        let bound = try core.operations.bound(query: operation)
        try await core.requireAwake()
        switch policy {
        case .cacheOnly:
            let cached = try answer(bound, from: .query, allowsPartial: false).response
            guard options.staleAllowed || options.isFresh(cached) else { throw .tooOld(cached) }
            return cached
        case .cacheFirst:
            if let cached = cached(bound) {
                if options.isFresh(cached) { return cached }
                if options.staleAllowed {
                    refetch(operation, bound, options)
                    return cached
                }
            }
            return try await exchange(operation, bound, options)
        case .networkOnly, .cacheAndNetwork: return try await exchange(operation, bound, options)
        case .networkFirst:
            do throws(LarderError) { return try await exchange(operation, bound, options) } catch {
                guard error.isForWantOfAnswer, error.code != .cancelled,
                    let cached = cached(bound), options.staleAllowed || options.isFresh(cached)
                else { throw error }
                core.logger.debug(
                    "answered from the cache, for no answer could be had of the server",
                    metadata: [
                        "error": "\(error)"
                    ])
                return cached
            }
        }
    }

    /// As `fetch`, in the program's own type.
    ///
    /// - Throws: As `fetch`; `.data` where the answer does not fit the type.
    public func fetch<Typed: TypedOperation>(
        _ operation: Typed, policy: FetchPolicy = .cacheFirst, options: FetchOptions = FetchOptions()
    ) async throws(LarderError) -> Typed.Data {
        try decoded(await fetch(operation.operation, policy: policy, options: options))
    }

    /// All the answers that a policy gives: two for `.cacheAndNetwork` where the cache knows everything, else one.
    ///
    /// The stream fails with what `fetch` throws; letting go of it cancels the fetch.
    public func fetches(
        _ operation: GraphQLOperation, policy: FetchPolicy, options: FetchOptions = FetchOptions()
    ) -> AsyncThrowingStream<Response, any Error> {
        AsyncThrowingStream { continuation in
            let task = Task {
                do {
                    if policy == .cacheAndNetwork {
                        let bound = try core.operations.bound(query: core.withRealIDs(operation))
                        try await core.requireAwake()
                        if let cached = cached(bound) { continuation.yield(cached) }
                    }
                    continuation.yield(try await fetch(operation, policy: policy, options: options))
                    continuation.finish()
                } catch { continuation.finish(throwing: error) }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Sends a mutation now. It is never kept for later: it succeeds, or throws.
    ///
    /// Objects in the answer are stored like any other's; the mutation itself is not.
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - time: How long the whole exchange may take; `options.timeout` where absent.
    ///   - options: Headers, the error policy and the timeout.
    /// - Returns: The answer, also where the cache cannot take it, which is logged: the change is made, and what it
    ///   changed is fetched when it is asked for.
    /// - Throws: As `fetch`. After `transport.timedOut`, `transport.interrupted`, `.cancelled` and `.parked`, after an
    ///   answer that does not fit, and after an error of a field the server may have made the change nevertheless.
    public func send(
        _ operation: GraphQLOperation, within time: Duration? = nil, options: FetchOptions = FetchOptions()
    ) async throws(LarderError) -> Response {
        var operation = try core.withRealIDs(operation)
        var bound = try core.operations.bound(operation)
        guard bound.layout.plan.kind == .mutation else {
            throw LarderError(.operation, "The function send takes mutations only; use fetch for a query")
        }
        if let variables = try core.withVersions(operation.variables, bound) {
            operation.variables = variables
            bound = try core.operations.bound(operation)
        }
        var options = options
        if let time { options.timeout = time }
        return try await exchange(operation, bound, options)
    }

    /// As `send`, in the program's own type.
    public func send<Typed: TypedOperation>(
        _ operation: Typed, within time: Duration? = nil, options: FetchOptions = FetchOptions()
    ) async throws(LarderError) -> Typed.Data {
        try decoded(await send(operation.operation, within: time, options: options))
    }

    /// A complete answer from the cache; nil also where the cache cannot be read, which is logged.
    private func cached(_ operation: BoundOperation) -> Response? {
        do throws(RecordError) {
            let response = try core.cache.read(operation).response
            return response.isComplete ? response : nil
        } catch {
            core.logger.warning("the cache could not be read", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Asks the server in the background, unless it is being asked already.
    private func refetch(_ operation: GraphQLOperation, _ bound: BoundOperation, _ options: FetchOptions) {
        guard core.refetched.withLock({ $0.insert(operation).inserted }) else { return }
        Task {
            defer { _ = core.refetched.withLock { $0.remove(operation) } }
            do throws(LarderError) { _ = try await exchange(operation, bound, options) } catch {
                core.logger.debug("an old answer could not be fetched again", metadata: ["error": "\(error)"])
            }
        }
    }

    /// As `fetch` from the server alone, of a page of a list.
    ///
    /// - Parameter page: Where the page stands, in a list whose pages do not say what follows: if it is another page than
    ///   before, the one after it is removed in the commit that stores it.
    func fetch(
        _ operation: GraphQLOperation, endingListAfter page: PagePlace?, options: FetchOptions
    ) async throws(LarderError) -> Response {
        try await exchange(operation, try core.operations.bound(query: operation), options, page)
    }

    private func exchange(
        _ operation: GraphQLOperation, _ bound: BoundOperation, _ options: FetchOptions, _ page: PagePlace? = nil
    ) async throws(LarderError) -> Response {
        guard let transport else {
            throw LarderError(.noTransport, "The partition has no transport, and the cache does not suffice")
        }
        try await core.requireAwake()
        try core.requireRealIDs(in: operation)
        // A server is not asked, and less told to change anything, where its answer could not be kept.
        do { try core.cache.checkWritable() } catch { throw LarderError.parking(error) }
        let request = try core.request(operation, bound, headers: options.headers)
        let answer: GraphQLAnswer
        do { answer = try await core.send(request, by: transport, within: options.timeout) } catch {
            throw error.code == .cancelled
                ? LarderError(.cancelled, "The task was cancelled", cause: error) : LarderError(error)
        }
        let parsed: ParsedResponse
        do throws(RecordError) {
            parsed = try ParsedResponse.parse(answer.body, along: bound.layout)
        } catch { throw LarderError.parking(error) }
        let age = AnswerAge(age: answer.age ?? .zero, maxAge: answer.maxAge)
        do throws(RecordError) {
            _ = try await core.cache.write(parsed, of: bound, age: age, endingListAfter: page)
            // Deltas do not tell of what the server could not write there.
            if bound.layout.plan.kind == .mutation, parsed.errors.contains(where: \.isLate) {
                try await core.noteMissed()
            }
        } catch {
            // A query can be asked again. That a mutation took effect must not look like its failure.
            guard bound.layout.plan.kind == .mutation, parsed.hasData, error.code != .closed else {
                throw LarderError.parking(error)
            }
            core.logger.warning("the answer of a mutation could not be stored", metadata: ["error": "\(error)"])
        }
        // A parked partition keeps its late answer; the caller works in another partition by now.
        try core.requireCurrent()
        return try result(parsed, answer, age.age, options.errorPolicy)
    }

    private func result(
        _ parsed: ParsedResponse, _ answer: GraphQLAnswer, _ age: Duration, _ policy: ErrorPolicy
    ) throws(LarderError) -> Response {
        let response: Response
        do { response = try parsed.assembled(age: age) } catch { throw LarderError(error) }
        guard parsed.hasData, policy != .fail || parsed.errors.isEmpty else {
            throw LarderError(
                .serverErrors, "The server answered with errors", errors: parsed.errors,
                response: parsed.hasData ? response : nil, cause: answer.refusal)
        }
        return policy == .ignore ? response.withoutErrors : response
    }
}

extension LarderError {
    /// Whether the server has left the query unanswered, so that the cache may answer it. A server that sends errors with
    /// the status 401, 429 or 5xx has not carried the query out.
    fileprivate var isForWantOfAnswer: Bool {
        guard let refusal = cause as? TransportError else {
            return code == .noTransport || code.rawValue == OperationsError.Code.unknownTemporaryID.rawValue
        }
        guard code == .serverErrors, let status = refusal.status else { return true }
        return [401, 429].contains(status) || status >= 500
    }
}

extension GraphQLAnswer {
    /// What the status of HTTP says beside the errors; nil where it says nothing more.
    var refusal: TransportError? {
        guard let status, status >= 400 else { return nil }
        return TransportError(
            .status, "The server answered with the HTTP status \(status)", status: status, retryAfter: retryAfter)
    }
}

extension PartitionCore {
    /// The request that asks an operation.
    func request(
        _ operation: GraphQLOperation, _ bound: BoundOperation, headers: [GraphQLRequest.Header]
    ) throws(LarderError) -> GraphQLRequest {
        request(try operations.compiled(operation), bound, headers: headers)
    }

    func request(
        _ compiled: CompiledOperation, _ bound: BoundOperation, headers: [GraphQLRequest.Header]
    ) -> GraphQLRequest {
        GraphQLRequest(
            kind: GraphQLRequest.OperationKind(compiled.kind), operationName: compiled.name,
            document: compiled.sentText, documentHash: compiled.sentHash,
            variables: Value.object(bound.binding.variables).json, headers: headers)
    }
}

extension GraphQLRequest.OperationKind {
    init(_ kind: OperationKind) {
        self =
            switch kind {
            case .query: .query
            case .mutation: .mutation
            case .subscription: .subscription
            }
    }
}
