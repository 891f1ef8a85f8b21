import LarderGraphQL
import LarderRecords

/// Where a page begins; the page that the operation itself asks for has no value.
struct PagePosition: Sendable, Hashable {
    static let start = PagePosition(value: nil, isBackward: false)

    /// A token, a cursor, an offset or a number; for a merger, the variables that it said.
    var value: Value?
    /// Whether it is asked for by the arguments that go backward.
    var isBackward: Bool
}

/// What one page holds, and where its neighbours are.
struct PageContent: Sendable {
    let response: Response
    /// The list of the page's elements; nil where the page has none.
    fileprivate let elements: ResponseValue?
    fileprivate let node: String?
    /// Of each object the number of its record, without elements that are null.
    let records: [UInt64]
    let next: PagePosition?
    let previous: PagePosition?

    /// The objects whose records are `records`.
    var objects: [ResponseValue] { elements?.objects(under: node) ?? [] }
}

/// How the pages of an operation are asked for and read.
///
/// Which pages belong to the list is not stored apart from them: each page says where the next one begins, and that is
/// the next page's own cache key. A page joins the list in the commit that stores it.
struct PagedList: Sendable {
    let core: PartitionCore
    /// The list's own cache key, for messages: its field without the arguments that choose a page.
    let key: String
    /// Nil where a merger goes from page to page.
    private let plan: ConnectionPlan?
    private let merger: PageMerger?
    /// The list's place in the schema or in the answer, for messages.
    private let place: String
    /// The response keys from the root to the page, and from there to its elements.
    private let path: [String]
    /// How many fields lead from the root to the page, itself included.
    var depth: Int { max(1, path.count) }
    private let elements: [String]
    private let operation: GraphQLOperation
    private let pageSize: Int?
    /// Whether it begins with the last page, and goes on with the one before: where the operation asks for so many of
    /// the last.
    let goesBackward: Bool
    /// Where the first page begins, for offsets and numbers.
    private let origin: Int64
    /// By type: the key fields and their response keys.
    private let identities: [String: [(name: String, responseKey: String)]]
    private let onlyType: String?

    /// - Throws: `.operation` where the operation asks for no list of pages, or lacks what paging needs; otherwise as
    ///   `read`.
    init(_ operation: GraphQLOperation, _ core: PartitionCore, _ merger: PageMerger? = nil) throws(LarderError) {
        self.core = core
        self.merger = merger
        let bound = try core.operations.bound(query: operation, exposesAdded: true)
        let layout = bound.layout.plan
        if let merger {
            guard let objects = layout.selection(ofList: merger.elements) else {
                throw LarderError(
                    .operation, "The operation asks for no list of objects at \(merger.elements.joined(separator: "."))"
                )
            }
            (plan, pageSize, origin, self.operation) = (nil, nil, 0, operation)
            goesBackward = false
            (path, elements) = ([], merger.elements)
            place = merger.elements.joined(separator: ".")
            key = place
            (identities, onlyType) = Self.identities(of: objects, layout)
            return
        }
        let plan: ConnectionPlan
        do { plan = try ConnectionPlan(layout, core.operations.schema) } catch { throw LarderError(error) }
        (self.plan, path, elements, place) = (plan, plan.path, plan.elements, plan.place)
        let variables = bound.binding.variables
        key = plan.listKey(variables, core.operations.schema)
        let asked = [plan.forward, plan.backward].compactMap { $0?.size(variables) }.first
        // An Int of GraphQL can be no larger.
        guard 1...Int(Int32.max) ~= asked ?? 1 else {
            throw LarderError(.variables, "A page of \(plan.place) cannot have \(asked ?? 0) elements")
        }
        pageSize = asked ?? plan.maxLimit
        goesBackward =
            plan.backward != nil
            && (plan.forward == nil || plan.forward?.size(variables) == nil && plan.backward?.size(variables) != nil)
        var first = operation
        if asked == nil, let size = plan.maxLimit, case .variable(let name)? = (plan.forward ?? plan.backward)?.limit {
            first.variables[name] = .int(Int64(size))
        }
        self.operation = first
        let given = plan.forward.flatMap { variables[$0.position] }
        if case .int(let number)? = given { origin = number } else { origin = plan.kind == .page ? 1 : 0 }
        (identities, onlyType) = Self.identities(of: plan.objects, layout)
    }

    /// What identifies the objects of a selection, and their type where it can only be one.
    private static func identities(
        of selection: Int, _ layout: Plan
    ) -> ([String: [(name: String, responseKey: String)]], String?) {
        let objects = layout.selections[selection]
        var identities: [String: [(name: String, responseKey: String)]] = [:]
        for type in objects.types {
            guard let fields = layout.cases[type.caseIndex].keyFields else { continue }
            identities[type.name] = fields.map { (layout.fields[$0].name, layout.fields[$0].responseKey) }
        }
        return (identities, objects.isConcrete ? objects.staticTypeName : nil)
    }

    /// The operation that asks for one page.
    func operation(at position: PagePosition) -> GraphQLOperation {
        var page = operation
        if let plan {
            page.variables = moved(operation.variables, to: position, plan)
        } else if case .object(let variables)? = position.value {
            // A merger says the variables themselves.
            page.variables.merge(variables) { $1 }
        }
        return page
    }

    /// The variables of the page at a position, from those of the first.
    private func moved(
        _ variables: [String: Value], to position: PagePosition, _ plan: ConnectionPlan
    ) -> [String: Value] {
        guard let value = position.value, let way = position.isBackward ? plan.backward : plan.forward else {
            return variables
        }
        var moved = variables
        if let other = position.isBackward ? plan.forward : plan.backward {
            moved[other.position] = nil
            if case .variable(let name) = other.limit { moved[name] = nil }
        }
        moved[way.position] = value
        if let pageSize, case .variable(let name) = way.limit { moved[name] = .int(Int64(pageSize)) }
        return moved
    }

    /// The page's operation as the cache reads it, with what identifies its objects.
    func bound(at position: PagePosition) throws(LarderError) -> BoundOperation {
        try core.operations.bound(query: operation(at: position), exposesAdded: true)
    }

    /// Whether pages do not say what follows: a page is at its place whatever became of the list before it.
    var countsPlaces: Bool { plan?.steps(pageSize) != nil }

    /// Where a page stands in the list, by which the cache stores it; nil where pages say what follows.
    func place(of position: PagePosition) throws(LarderError) -> PagePlace? {
        guard countsPlaces, let chain = try chain() else { return nil }
        return PagePlace(chain: chain, number: number(position))
    }

    /// How the cache itself goes from page to page; nil for a merger.
    private func chain() throws(LarderError) -> PageChain? {
        guard let plan else { return nil }
        // With their defaults, as the keys in the cache have them.
        let first = try bound(at: .start).binding.variables
        func variables(_ isBackward: Bool) -> [String: Value] {
            moved(first, to: PagePosition(value: .string(""), isBackward: isBackward), plan)
        }
        return plan.chain(
            first: first, next: variables(false), previous: variables(true), size: pageSize, origin: origin,
            core.operations.schema)
    }

    /// How the cache changes the pages as one list.
    ///
    /// - Parameter isGrowing: Whether a change puts an object in.
    /// - Throws: `.operation` where it cannot, or where an object cannot be put in.
    func changeableChain(takingIn isGrowing: Bool = false) throws(LarderError) -> PageChain {
        guard let chain = try chain(), plan?.canChange(pageSize) == true else {
            throw LarderError(
                .operation,
                "The pages of \(place) cannot be changed as one list: a list by offset needs a limit, a merger of the "
                    + "program's own is not kept with a mutation, and a list with arguments is another each time; "
                    + "refresh the list instead")
        }
        if isGrowing, let edge = chain.edge, edge.type == nil {
            throw LarderError(
                .operation,
                "An edge of \(place) says more than its node, which only the server knows; ask for node alone, or "
                    + "refresh the list when the server has answered")
        }
        return chain
    }

    // MARK: Reading

    /// The objects of a page, without elements that are null.
    ///
    /// - Parameter hidden: Which of the objects are left out, by their places; it is told the numbers of their records.
    func page(_ response: Response, without hidden: ([UInt64]) -> [Int]) -> Page {
        let elements = elements(of: connection(of: response))
        let places = hidden(elements?.records(under: plan?.node) ?? [])
        return Page(response: response, objects: elements?.objects(under: plan?.node, without: places) ?? [])
    }

    private func connection(of response: Response) -> ResponseValue? {
        var connection = response.data
        for name in path { connection = connection?[name] }
        return connection
    }

    private func elements(of connection: ResponseValue?) -> ResponseValue? {
        var list = connection
        for name in elements { list = list?[name] }
        return list
    }

    /// Whether an answer has errors in place of the list itself, and not only of some of its objects.
    func isLacking(in response: Response) -> Bool {
        !response.errors.isEmpty && elements(of: connection(of: response))?.isNull != false
    }

    /// What a page holds that was read along `bound`.
    ///
    /// - Throws: `.paging` where the page does not say whether another follows.
    func content(_ response: Response, at position: PagePosition) throws(LarderError) -> PageContent {
        let connection = connection(of: response)
        let list = elements(of: connection)
        func content(next: PagePosition?, previous: PagePosition?) -> PageContent {
            PageContent(
                response: response, elements: list, node: plan?.node,
                records: list?.records(under: plan?.node) ?? [], next: next, previous: previous)
        }
        if let merger {
            let variables = operation(at: position).variables
            let isBeforeFirst = position == .start || position.isBackward
            return content(
                next: merger.next(response, variables).map { PagePosition(value: .object($0), isBackward: false) },
                previous: isBeforeFirst
                    ? merger.previous?(response, variables).map { PagePosition(value: .object($0), isBackward: true) }
                    : nil)
        }
        // A connection that is null has no pages.
        guard let plan, let connection, !connection.isNull else { return content(next: nil, previous: nil) }
        // Objects that are no more were on the page when it came, which is as long as the server made it.
        let count = list?.storedCount ?? 0
        return content(
            next: try next(of: connection, plan, at: position, count: count),
            previous: try previous(of: connection, plan, at: position, count: count))
    }

    /// The cache key of each object of a page; nil where it has no identity.
    ///
    /// - Complexity: O(n) in the objects, whose keys are made.
    func keys(of content: PageContent) -> [ExactText?] { content.objects.map(identity) }

    private func next(
        of connection: ResponseValue, _ plan: ConnectionPlan, at position: PagePosition, count: Int
    ) throws(LarderError) -> PagePosition? {
        if let steps = plan.steps(pageSize) {
            return steps.next(after: number(position), count).map { PagePosition(value: .int($0), isBackward: false) }
        }
        guard let value = try neighbour(plan.next, of: connection) else { return nil }
        return PagePosition(value: value, isBackward: false)
    }

    private func previous(
        of connection: ResponseValue, _ plan: ConnectionPlan, at position: PagePosition, count: Int
    ) throws(LarderError) -> PagePosition? {
        if let steps = plan.steps(pageSize) {
            return steps.previous(before: number(position), count).map {
                PagePosition(value: .int($0), isBackward: false)
            }
        }
        // A page that another leads to says only how that way goes on; a token says only what follows.
        guard position == .start || position.isBackward, plan.backward != nil, plan.previous != nil,
            let value = try neighbour(plan.previous, of: connection)
        else { return nil }
        return PagePosition(value: value, isBackward: true)
    }

    private func number(_ position: PagePosition) -> Int64 {
        if case .int(let number)? = position.value { number } else { origin }
    }

    private func neighbour(
        _ neighbour: ConnectionPlan.Neighbours?, of connection: ResponseValue
    ) throws(LarderError) -> Value? {
        guard let neighbour else { return nil }
        var info: ResponseValue? = connection
        for name in neighbour.info { info = info?[name] }
        guard let info, !info.isNull else {
            throw LarderError(.paging, "A page of \(place) has no pageInfo, so that its end cannot be told")
        }
        if let has = neighbour.has, info[has]?.boolean != true { return nil }
        let position = info[neighbour.position]
        if let text = position?.string, !text.isEmpty { return .string(text) }
        if let number = position?.int { return .int(number) }
        guard neighbour.has == nil else {
            throw LarderError(.paging, "A page of \(place) says that another follows, and has no cursor for it")
        }
        return nil
    }

    private func identity(of object: ResponseValue) -> ExactText? {
        guard let type = onlyType ?? object["__typename"]?.string, let fields = identities[type] else { return nil }
        var values: [(name: String, value: String)] = []
        for field in fields {
            guard let value = object[field.responseKey], let text = value.keyText else { return nil }
            values.append((field.name, text))
        }
        return ExactText(CacheKey.text(type: type, fields: values))
    }

    // MARK: Errors

    /// - Parameter response: The answer, which has errors in place of the list.
    func lacking(in response: Response) -> LarderError {
        LarderError(
            .serverErrors, "The server answered with errors in place of the pages of \(place)",
            errors: response.errors, response: response)
    }

    func endless(_ count: Int) -> LarderError {
        LarderError(
            .paging, "\(count) pages of \(place) in a row are empty; ask again to go on, if that can be right")
    }

    func repeated() -> LarderError {
        LarderError(
            .paging,
            "The server's pages of \(place) lead back to a page that was read before; refresh the list")
    }
}

extension Plan {
    /// Which selection the elements of a list have, by the response keys that lead to it; nil where there is no list of
    /// objects.
    fileprivate func selection(ofList path: [String]) -> Int? {
        var selection = root
        for (index, key) in path.enumerated() {
            guard let onlyCase = selections[selection].types.first?.caseIndex,
                let field = fields[cases[onlyCase].fields].first(where: { $0.responseKey == key }),
                case .object(let inner) = field.content,
                field.type.listDepth == (index == path.count - 1 ? 1 : 0)
            else { return nil }
            selection = inner
        }
        return path.isEmpty ? nil : selection
    }
}

extension ConnectionPlan.Direction {
    /// The size of page that is asked for; nil where the operation leaves it open.
    fileprivate func size(_ variables: [String: Value]) -> Int? {
        switch limit {
        case .variable(let name): if case .int(let size)? = variables[name] { Int(size) } else { nil }
        case .fixed(let size): size
        case .unsaid: nil
        }
    }
}

extension ResponseValue {
    fileprivate var keyText: String? {
        switch kind {
        case .string: string
        case .int, .float, .number: number
        case .boolean: boolean == true ? "true" : "false"
        case .null, .json, .list, .object: nil
        }
    }
}
