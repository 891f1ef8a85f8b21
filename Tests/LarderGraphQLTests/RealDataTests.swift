import LarderGraphQL
import LarderTestSupport
import Testing

@Suite("Real schemas and operations", .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))
struct RealDataTests {
    static let schemas = ["github/schema.graphqls", "starwars/schema.graphqls"]

    @Test("A real schema reads back from its serialized form as it was", arguments: schemas)
    func serializedSchema(name: String) throws {
        let schema = try RealData.schema(name)
        let bytes = schema.serialized()
        #expect(try SchemaIndex(serialized: bytes) == schema)
    }

    @Test("The GitHub schema has the types, roots and keys that its text defines")
    func githubSchema() throws {
        let schema = try RealData.schema("github/schema.graphqls")
        #expect(schema.types[schema.queryType].name == "Query")
        #expect(schema.mutationType.map { schema.types[$0].name } == "Mutation")
        #expect(schema.subscriptionType == nil)
        let user = try #require(schema.type(named: "User"))
        let actor = try #require(schema.type(named: "Actor"))
        #expect(schema.types[user].keyFields == ["id"])
        #expect(schema.types[actor].keyFields == nil)
        #expect(schema.isPossible(user, of: actor))
        #expect(!schema.isPossible(schema.queryType, of: actor))
        let names = schema.types[actor].possibleTypes.map { schema.types[$0].name }
        #expect(Set(names) == ["Bot", "EnterpriseUserAccount", "Mannequin", "Organization", "User"])
    }

    @Test("The GitHub operation is valid against its schema")
    func githubOperation() throws {
        let schema = try RealData.schema("github/schema.graphqls")
        let document = try Document(parsing: RealData.text("github/IssuesAndCommentsForRepository.graphql"))
        #expect(validate(document, against: schema) == [])
    }

    @Test("The Star Wars operations are valid against their schema, joined to one document")
    func starWarsOperations() throws {
        let schema = try RealData.schema("starwars/schema.graphqls")
        let document = try Document(parsing: RealData.starWarsOperations())
        #expect(document.operations.count > 30)
        #expect(validate(document, against: schema) == [])
    }

    @Test("Real operations print to a text that parses to the same document")
    func roundTrip() throws {
        let texts = [
            try RealData.starWarsOperations(),
            try RealData.text("github/IssuesAndCommentsForRepository.graphql"),
        ]
        for text in texts {
            let document = try Document(parsing: text)
            let printed = document.printed()
            #expect(try Document(parsing: printed) == document)
            #expect(try Document(parsing: printed).printed() == printed)
        }
    }
}
