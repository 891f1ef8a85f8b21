import Larder
import LarderImport
import LarderTestSupport
import Testing

@Suite("What identifies an object that is taken over", .timeLimit(.minutes(10)))
struct ObjectIdentityTests {
    @Test(
        "An object to which nothing refers is taken with what identifies it, also where that is all that is known of it",
        arguments: [
            ("Cook:a", #""id":"a","name":"Ada""#, "Cook { id name }"), ("Cook:b", #""id":"b""#, "Cook { id }"),
            ("Book:7", #""isbn":7,"title":"Soups""#, "Book { isbn title }"),
        ])
    func unreferenced(key: String, members: String, fragment: String) async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .recordsOfApollo2)
            let type = key.prefix { $0 != ":" }
            try fixture.record("1", #"{"__typename":"\#(type)",\#(members)}"#)
            fixture.close()
            #expect(try await source(fixture.path).run(into: app).objects == .init(taken: 1))
            let found = try app.read(CacheKey(key), GraphQLFragment("fragment F on \(fragment)"))
            #expect(String(decoding: found.json, as: UTF8.self) == "{\(members)}")
        }
    }
}
