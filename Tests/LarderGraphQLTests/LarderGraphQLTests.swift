import Testing
import LarderGraphQL
import LarderTestSupport

@Suite("Real schemas")
struct RealSchemaTests {
    static let names = ["github/schema.graphqls", "starwars/schema.graphqls"]

    @Test("A real schema parses, and reads back from its serialized form as it was",
          .enabled(if: SharedData.isPresent, "needs ../shared/data"), arguments: names)
    func realSchema(name: String) throws {
        let text = String(decoding: try SharedData.bytes(name), as: UTF8.self)
        let clock = ContinuousClock()
        var start = clock.now
        let schema = try SchemaIndex(parsing: text, sourceName: name)
        print("parse", clock.now - start)
        start = clock.now
        let bytes = schema.serialized()
        print("serialize", clock.now - start, bytes.count)
        start = clock.now
        let back = try SchemaIndex(serialized: bytes)
        print("load", clock.now - start)
        #expect(back == schema)
    }
}
