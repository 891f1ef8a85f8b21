import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Keys of fields with arguments")
struct FieldKeyTests {
    @Test("Arguments that differ only in how Unicode composes them are two")
    func composedArguments() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "query($t: String) { note(text: $t) }"
            try await sample.write(query, ["t": .string("\u{E9}")], data: #"{"note":"composed"}"#)
            #expect(try sample.missing(query, ["t": .string("e\u{301}")]) == ["note"])
            try await sample.write(query, ["t": .string("e\u{301}")], data: #"{"note":"decomposed"}"#)
            #expect(try sample.json(query, ["t": .string("\u{E9}")]) == #"{"note":"composed"}"#)
            #expect(try sample.json(query, ["t": .string("e\u{301}")]) == #"{"note":"decomposed"}"#)
            let both = "{ a: note(text: \"\u{E9}\") b: note(text: \"e\u{301}\") }"
            #expect(try sample.json(both) == #"{"a":"composed","b":"decomposed"}"#)
        }
    }
}
