import Foundation
import Larder
import LarderGraphQL
import LarderImport
import LarderTestSupport
import Testing

@Suite(
    "Taking over real answers", .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"),
    .timeLimit(.minutes(10)))
struct RealDataTests {
    @Test("A real answer that Apollo's client has split comes back as the server sent it", arguments: [true, false])
    func github(_ keyed: Bool) async throws {
        let text = String(decoding: try SharedData.bytes("github/schema.graphqls"), as: UTF8.self)
        let query = String(
            decoding: try SharedData.bytes("github/IssuesAndCommentsForRepository.graphql"), as: UTF8.self)
        let schema = try Schema(parsing: text)
        var normalizer = try ApolloNormalizer(query, SchemaIndex(serialized: schema.compiled)) { object in
            // Without keys of its own, an app has all objects by their paths.
            guard keyed, case .string(let type)? = object["__typename"], case .string(let id)? = object["id"] else {
                return nil
            }
            return "\(type):\(id)"
        }
        let response = try Value(json: SharedData.bytes("github/IssuesAndCommentsForRepository.json"))
        guard case .object(let whole) = response, case .object(let data)? = whole["data"] else {
            Issue.record("the answer is no answer")
            return
        }
        normalizer.add(data)
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "apollo.sqlite").path, .records)
            try fixture.run("BEGIN")
            for (key, fields) in normalizer.records {
                try fixture.record(key, String(decoding: Value.object(fields).json, as: UTF8.self))
            }
            try fixture.run("COMMIT")
            fixture.close()
            let store = try Store.open(at: folder.appending(path: "store"), schema: schema)
            let app = try store.partition()
            let source = try ImportSource(.apollo, path: fixture.path, schema: schema)
            let report = try await source.run(into: app)
            #expect(report.omissions == [])
            #expect(report.records == normalizer.records.count)
            #expect(report.rootFields == .init(taken: 1))
            #expect(report.objects.taken > 50)
            let answer = try app.read(GraphQLOperation(query))
            // The answer as it would be after the server had sent it.
            let other = try Store.open(at: folder.appending(path: "other"), schema: schema)
            let direct = try other.partition()
            _ = try await direct.take(
                SharedData.bytes("github/IssuesAndCommentsForRepository.json"), of: GraphQLOperation(query))
            #expect(try answer == direct.read(GraphQLOperation(query)))
            #expect(try await source.run(into: app).rootFields == .init(present: 1))
            #expect(try app.records.check().isSound)
            try store.close()
            try other.close()
        }
    }

    @Test("Interfaces, unions and enum arguments of a real schema are taken from what AppSync's SDK has kept")
    func starWars() async throws {
        let text = String(decoding: try SharedData.bytes("starwars/schema.graphqls"), as: UTF8.self)
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "queries.db").path, .records)
            try fixture.record(
                "QUERY_ROOT",
                #"""
                {"hero":{"$reference":"2001"},"hero(episode:EMPIRE)":{"$reference":"1000"},
                 "search(text:an)":[{"$reference":"1000"},{"$reference":"3000"}],
                 "human(id:1000)":{"$reference":"1000"}}
                """#)
            try fixture.record(
                "2001",
                #"""
                {"__typename":"Droid","id":"2001","name":"R2-D2","appearsIn":["NEWHOPE","EMPIRE"],
                 "friends":[{"$reference":"1000"}],"primaryFunction":"Astromech"}
                """#)
            try fixture.record(
                "1000",
                #"""
                {"__typename":"Human","id":"1000","name":"Luke Skywalker","friends":[{"$reference":"2001"}],
                 "height(unit:FOOT)":5.6430448,"height":1.72,
                 "friendsConnection(first:1)":{"$reference":"1000.friendsConnection(first:1)"}}
                """#)
            try fixture.record(
                "1000.friendsConnection(first:1)",
                #"""
                {"__typename":"FriendsConnection","totalCount":1,
                 "edges":[{"$reference":"1000.friendsConnection(first:1).edges.0"}]}
                """#)
            try fixture.record(
                "1000.friendsConnection(first:1).edges.0",
                #"""
                {"__typename":"FriendsEdge","cursor":"Y3Vyc29yMQ==","node":{"$reference":"2001"}}
                """#)
            try fixture.record("3000", #"{"__typename":"Starship","id":"3000","name":"Falcon","length":34.37}"#)
            fixture.close()
            let schema = try Schema(parsing: text)
            let store = try Store.open(at: folder.appending(path: "store"), schema: schema)
            let app = try store.partition()
            let report = try await ImportSource(.appSync, path: folder.path, schema: schema).run(into: app)
            #expect(report.omissions == [])
            #expect(report.objects == .init(taken: 3) && report.parts == 2)
            let read = """
                { hero { name friends { name } }
                  empire: hero(episode: EMPIRE) { name ... on Human { height(unit: FOOT) } }
                  human(id: 1000) { height friendsConnection(first: 1) { totalCount edges { cursor node { name } } } }
                  search(text: "an") { __typename ... on Starship { length } } }
                """
            #expect(
                try app.json(read) == #"""
                    {"hero":{"name":"R2-D2","friends":[{"name":"Luke Skywalker"}]},\#
                    "empire":{"name":"Luke Skywalker","height":5.6430448},\#
                    "human":{"height":1.72,"friendsConnection":{"totalCount":1,"edges":[{"cursor":"Y3Vyc29yMQ==",\#
                    "node":{"name":"R2-D2"}}]}},\#
                    "search":[{"__typename":"Human"},{"__typename":"Starship","length":34.37}]}
                    """#)
            try store.close()
        }
    }
}
