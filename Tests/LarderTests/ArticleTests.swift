import Larder
import LarderTestSupport
import Synchronization
import Testing

/// The programs that the published articles show, with the names that they use.
@Suite("The articles' programs", .timeLimit(.minutes(10)))
struct ArticleTests {
    private static let schema = """
        type Query @fieldPolicy(forField: "listMovies", paginationArgs: "nextToken") {
          listMovies(nextToken: String): MovieConnection
          getMovie(id: ID!): Movie
          listAll(limit: Int, nextToken: String): MovieConnection
        }
        type Movie { id: ID! name: String! released: AWSDate createdAt: AWSDateTime! }
        type MovieConnection { movies: [Movie!]! nextToken: String }
        """
    private static let list = GraphQLOperation(
        "query List($nextToken: String) { listMovies(nextToken: $nextToken) { movies { id name } nextToken } }")

    private func getMovie(_ id: Int) -> GraphQLOperation {
        GraphQLOperation("query Get($id: ID!) { getMovie(id: $id) { name } }", variables: ["id": .int(Int64(id))])
    }

    /// Ten movies a page, 35 in all; the token is the number of the page. Answers what `fault` says in place of a page.
    private func server(
        asked: @escaping @Sendable (Int) -> Void = { _ in },
        fault: @escaping @Sendable (Int) throws -> String? = { _ in nil }
    ) -> ScriptedServer {
        ScriptedServer { request in
            let page = (request.values["nextToken"] as? String).flatMap(Int.init) ?? 0
            asked(page)
            if let fault = try fault(page) { return fault }
            let movies = (page * 10..<min(35, page * 10 + 10)).map { number in
                #"{"__typename":"Movie","id":"\#(number)","name":"Movie \#(number)"}"#
            }
            let next = page == 3 ? "null" : "\"\(page + 1)\""
            return
                #"{"data":{"listMovies":{"__typename":"MovieConnection","movies":[\#(movies.joined(separator: ","))],"#
                + #""nextToken":\#(next)}}}"#
        }
    }

    @Test("A movie of a list answers getMovie(id:), without a policy and without a network")
    func getMovieFromList() async throws {
        let server = server()
        try await withStoreFixture(server, schema: Self.schema) { app in
            _ = try await app.fetch(Self.list, policy: .networkOnly)
            server.isReachable = false
            #expect(try app.read(getMovie(7))["getMovie"]?["name"]?.string == "Movie 7")
            #expect(throws: LarderError.self) { try app.read(getMovie(11)) }
            let count = server.requests.count
            let answer = try await app.fetch(getMovie(7), policy: .cacheFirst)
            #expect(answer["getMovie"]?["name"]?.string == "Movie 7")
            #expect(server.requests.count == count)
        }
    }

    @Test("A policy without key arguments says that a field's arguments name no object")
    func getSomethingElse() async throws {
        let schema = Self.schema + #" extend type Query @fieldPolicy(forField: "getMovie", keyArgs: [])"#
        try await withStoreFixture(server(), schema: schema) { app in
            _ = try await app.fetch(Self.list, policy: .networkOnly)
            #expect(throws: LarderError.self) { try app.read(getMovie(7)) }
        }
    }

    @Test("A connection of ten movies a page, without an argument for the limit, is loaded to its end")
    func tenAPage() async throws {
        let pages = Mutex<[Int]>([])
        try await withStoreFixture(
            server(asked: { page in pages.withLock { $0.append(page) } }), schema: Self.schema
        ) { app in
            let movies = try app.pages(Self.list)
            let status = try await movies.all()
            #expect(status.objectCount == 35 && status.pageCount == 4 && status.isComplete)
            #expect(pages.withLock { $0 } == [0, 1, 2, 3])
            #expect(try movies.page(3)?.objects.last?["name"]?.string == "Movie 34")
        }
    }

    @Test(
        "A page that fails in the middle is thrown with its reason; earlier pages stay, and going on asks for the rest",
        arguments: [
            "throttled": LarderError.Code.serverErrors, "offline": LarderError.Code(rawValue: "transport.unreachable"),
            "expired sign-in": LarderError.Code(rawValue: "transport.notSignedIn"),
        ])
    func failsInTheMiddle(cause: String, code: LarderError.Code) async throws {
        let pages = Mutex<[Int]>([])
        let isFailing = Mutex(true)
        let server = server(asked: { page in pages.withLock { $0.append(page) } }) { page in
            guard page == 2, isFailing.withLock({ $0 }) else { return nil }
            if cause == "expired sign-in" { throw TransportError(.notSignedIn, "The sign-in has ended") }
            guard cause == "throttled" else { throw TransportError.away }
            return #"{"data":null,"errors":[{"message":"Slow down","errorType":"ThrottlingException"}]}"#
        }
        try await withStoreFixture(server, schema: Self.schema) { app in
            let movies = try app.pages(Self.list)
            let error = await #expect(throws: LarderError.self) { try await movies.all() }
            #expect(error?.code == code)
            let status = try await movies.status()
            #expect(status.objectCount == 20 && !status.isComplete)
            isFailing.withLock { $0 = false }
            #expect(try await movies.all().objectCount == 35)
            #expect(pages.withLock { $0 } == [0, 1, 2, 2, 3])
        }
    }

    @Test("A schema as Amplify writes it is accepted, whose scalars of AppSync are declared nowhere")
    func amplifySchema() throws {
        let scalars = [
            "AWSDate", "AWSTime", "AWSDateTime", "AWSTimestamp", "AWSEmail", "AWSJSON", "AWSURL", "AWSPhone",
            "AWSIPAddress",
        ]
        let fields = scalars.map { "\($0.lowercased()): \($0)" }.joined(separator: " ")
        _ = try Schema(
            parsing: """
                type Note @aws_cognito_user_pools @aws_iam { id: ID! \(fields) createdAt: AWSDateTime! }
                type Query { getNote(id: ID!): Note @aws_api_key }
                type Mutation { putNote(at: AWSDateTime): Note }
                type Subscription { onPutNote: Note @aws_subscribe(mutations: ["putNote"]) }
                """)
    }

    @Test("A limit that a variable brings is held to the largest page, as a written one is")
    func variableLimit() async throws {
        let schema =
            Self.schema + #" extend type Query @fieldPolicy(forField: "listAll", paginationArgs: "limit nextToken")"#
        try await withStoreFixture(server(), schema: schema) { app in
            let text = "query All($n: Int) { listAll(limit: $n) { movies { id } nextToken } }"
            let tooMany = GraphQLOperation(text, variables: ["n": 1001])
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(tooMany, policy: .networkOnly)
            }
            #expect(error?.code == .variables)
        }
    }
}
