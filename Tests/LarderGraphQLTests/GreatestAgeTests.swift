import Testing

@testable import LarderGraphQL

@Suite("The greatest age of a field")
struct GreatestAgeTests {
    /// What the schema says of the one field of the type Recipe, which implements Node and Named.
    private func maxAge(
        field: String = "", type: String = "", inNode: String = "", node: String = "", named: String = ""
    ) throws -> Int? {
        let schema = try SchemaIndex(
            parsing: """
                type Query { recipe: Recipe } interface Node \(node) { price: Int \(inNode) }
                interface Named \(named) { price: Int }
                type Recipe implements Node & Named \(type) { price: Int \(field) }
                """)
        let recipe = try #require(schema.type(named: "Recipe"))
        return schema.maxAge(of: try #require(schema.field(named: "price", of: recipe)), of: recipe)
    }

    private func age(_ seconds: Int) -> String { "@cacheControl(maxAge: \(seconds))" }

    @Test("A field goes before its type, a type before its interfaces, and of several the least counts")
    func order() throws {
        #expect(try maxAge() == nil)
        #expect(try maxAge(node: age(40)) == 40)
        #expect(try maxAge(node: age(40), named: age(30)) == 30)
        #expect(try maxAge(node: age(30), named: age(40)) == 30)
        #expect(try maxAge(type: age(50), node: age(40)) == 50)
        #expect(try maxAge(type: age(50), inNode: age(60), node: age(40)) == 60)
        #expect(try maxAge(field: age(70), type: age(50), inNode: age(60), node: age(40)) == 70)
    }

    @Test("An age that a type, or an extension of it, says for one of its fields is that of no other field")
    func oneField() throws {
        let directive = #"@cacheControl(forField: "a", maxAge: 3)"#
        for text in [
            "type Query \(directive) { a: Int b: Int }", "type Query { a: Int b: Int } extend type Query \(directive)",
        ] {
            let schema = try SchemaIndex(parsing: text)
            #expect(schema.types[schema.queryType].maxAge == nil)
            #expect(schema.types[schema.queryType].fields.map(\.maxAge) == [3, nil])
        }
    }
}
