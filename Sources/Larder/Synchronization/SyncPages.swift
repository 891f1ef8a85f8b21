import Crypto
import LarderFiles
import LarderGraphQL
import LarderRecords

/// A delta query, as it is asked page by page.
struct SyncQuery: Sendable {
    let synchronization: Synchronization
    /// Of its position.
    let key: String
    /// What is synchronized, for people.
    let name: String
    /// Whether it asks for some of the objects only.
    let isFiltered: Bool
    private let partition: Partition
    private let plan: SyncPlan
    private let compiled: CompiledOperation

    /// Of the objects.
    var types: [String] { plan.types }
    /// Where the list is, for people.
    var place: String { plan.place }

    /// - Throws: `.operation`, `.syntax` or `.variables` where the operation is no delta query.
    init(_ synchronization: Synchronization, _ partition: Partition) throws(LarderError) {
        let core = partition.core
        var synchronization = synchronization
        synchronization.operation = try core.withRealIDs(synchronization.operation)
        try core.requireRealIDs(in: synchronization.operation)
        self.synchronization = synchronization
        self.partition = partition
        let bound = try core.operations.bound(query: synchronization.operation)
        do { plan = try SyncPlan(bound.layout.plan) } catch { throw LarderError(error) }
        compiled = try core.operations.compiled(synchronization.operation)
        isFiltered = plan.isFiltered(bound.binding.variables)
        name = plan.listKey(bound.binding.variables, core.operations.schema)
        key = hexadecimal(SHA256.hash(data: Array((compiled.sentHash + name).utf8)))
    }

    /// - Throws: As `fetch`; `.serverErrors` where the answer has an error; `.paging` where it is no page.
    fileprivate func page(since: Int64?, token: String?) async throws(LarderError) -> SyncPages.Page {
        guard let transport = partition.transport else {
            throw LarderError(.noTransport, "The partition has no transport, and a synchronization needs the server")
        }
        let core = partition.core
        var variables = synchronization.operation.variables
        variables[plan.lastSync] = since.map(Value.int)
        variables[plan.token] = token.map(Value.string)
        if let limit = plan.limit, variables[limit] == nil { variables[limit] = .int(Int64(synchronization.pageSize)) }
        let bound = try core.operations.boundOnce(compiled, variables)
        let request = core.request(compiled, bound, headers: synchronization.headers)
        let answer: GraphQLAnswer
        do { answer = try await core.send(request, by: transport, within: synchronization.timeout) } catch {
            throw error.code == .cancelled
                ? LarderError(.cancelled, "The task was cancelled", cause: error) : LarderError(error)
        }
        let parsed: ParsedResponse
        do throws(RecordError) { parsed = try ParsedResponse.parse(answer.body, along: bound.layout) } catch {
            throw LarderError.parking(error)
        }
        // An object that could not be read would be missing for good.
        guard parsed.hasData, parsed.errors.isEmpty else {
            // The errors count for more than data beside them that cannot be read.
            let response = parsed.hasData ? try? parsed.assembled(age: answer.age ?? .zero) : nil
            throw LarderError(
                .serverErrors, "The server answered with errors", errors: parsed.errors, response: response,
                cause: answer.refusal)
        }
        guard case .int(let startedAt)? = parsed.leaf(at: [plan.field, plan.startedAt]),
            SyncPosition.times.contains(startedAt), let count = parsed.elementCount(at: [plan.field, plan.items])
        else { throw LarderError(.paging, "A page of \(plan.place) does not say when its walk began, or has no list") }
        var next: String?
        if case .string(let token)? = parsed.leaf(at: [plan.field, plan.nextToken]), !token.isEmpty { next = token }
        return .init(
            parsed: parsed, operation: bound, next: next, startedAt: startedAt, objectCount: count,
            byteCount: answer.body.count, mark: since == nil && !isFiltered ? SyncMark(parsed) : nil)
    }
}

/// The pages of one walk, in their order, as the server gives them.
struct SyncPages: Sendable {
    struct Page: Sendable {
        let parsed: ParsedResponse
        let operation: BoundOperation
        /// The token of the page after it; nil for the last.
        let next: String?
        let startedAt: Int64
        let objectCount: Int
        /// Of its JSON.
        let byteCount: Int
        /// As `SyncPage.mark`.
        let mark: SyncMark?
    }

    struct Failure: Error {
        let error: LarderError
        /// Whether the pages have no end, so that the walk is not to go on.
        var isEndless = false
    }

    private let query: SyncQuery
    /// After which the changes are asked for; nil for a walk through everything.
    let since: Int64?
    private var token: String?
    /// Whether the last page came.
    private(set) var hasEnded = false
    private var tokens: Set<String> = []
    private var emptyPageCount = 0

    private static let longestEmptyChain = 1_000
    /// How much is fetched before it is stored, and so shares a commit: bytes of JSON, and objects.
    private static let room = (bytes: 1 << 20, objects: 4_096)

    /// - Parameter token: With which to go on; nil for the first page.
    init(of query: SyncQuery, since: Int64?, token: String? = nil) {
        (self.query, self.since, self.token) = (query, since, token)
    }

    /// Asks for the page that follows.
    mutating func next() async -> Result<Page, Failure> {
        let page: Page
        do throws(LarderError) { page = try await query.page(since: since, token: token) } catch {
            return .failure(Failure(error: error))
        }
        hasEnded = page.next == nil
        if let next = page.next {
            emptyPageCount = page.objectCount == 0 ? emptyPageCount + 1 : 0
            guard emptyPageCount <= Self.longestEmptyChain, next != token, tokens.insert(next).inserted else {
                let message =
                    "The pages of \(query.place) have no end: a token comes again, or too many pages are empty"
                return .failure(Failure(error: LarderError(.paging, message), isEndless: true))
            }
        }
        token = page.next
        return .success(page)
    }

    /// Asks for the page that follows, and for those after it while they are wanted and there is room.
    ///
    /// - Returns: What came, up to the first failure, and where to go on.
    func goingOn(
        upTo count: Int, while isWanted: @escaping @Sendable () -> Bool
    ) async -> (answers: [Result<Page, Failure>], pages: SyncPages) {
        var (pages, answers, left) = (self, [Result<Page, Failure>](), Self.room)
        repeat {
            let answer = await pages.next()
            answers.append(answer)
            guard let page = try? answer.get() else { break }
            left = (left.bytes - page.byteCount, left.objects - page.objectCount)
        } while !pages.hasEnded && answers.count < count && left.bytes > 0 && left.objects > 0 && isWanted()
            && !Task.isCancelled
        return (answers, pages)
    }
}
