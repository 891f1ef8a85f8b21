import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import Larder

@Suite("GraphQL projects", .timeLimit(.minutes(10)))
struct GraphQLProjectTests {
    private static let folder = URL(filePath: "/p", directoryHint: .isDirectory)

    /// As Amplify's command writes it.
    private static let written = """
        projects:
          Movies:
            schemaPath: amplify/backend/schema.graphql
            includes:
              - graphql/**/*.graphql
            excludes:
              - ./amplify/**
            extensions:
              amplify:
                codeGenTarget: swift
                generatedFileName: API.swift
                docsFilePath: graphql
                maxDepth: 2
        extensions:
          amplify:
            version: 3
        """

    private func project(_ text: String, named name: String? = nil) throws -> GraphQLProject {
        try GraphQLProject(Array(text.utf8), origin: ".graphqlconfig.yml", folder: Self.folder, named: name)
    }

    private func fault(_ text: String, named name: String? = nil) -> String {
        let error = #expect(throws: LarderError.self) { try project(text, named: name) }
        #expect(error?.code == .environment)
        return error?.message ?? ""
    }

    @Test("In single quotes two quotes are one")
    func doubledQuote() throws {
        let text = "projects:\n  Movies:\n    schemaPath: 'the cook''s ''own''.graphql'"
        #expect(try project(text).schema.lastPathComponent == "the cook's 'own'.graphql")
    }

    @Test("In double quotes a backslash and a sign stand for one sign, and two braces are a section with nothing in it")
    func escapedSigns() throws {
        let text = #"schemaPath: "a\\b\"c\td\ne\/f.graphql""# + "\nincludes: [a.graphql]\nextensions: {}\n"
        #expect(try project(text).schema.path == "/p/a\\b\"c\td\ne/f.graphql")
    }

    @Test("A hash begins a comment only after a space or a tab, and never within quotes")
    func comments() throws {
        for text in ["s#1.graphql # x", "s#1.graphql\t#x", "'s#1.graphql' # 'x", "\"s#1.graphql\""] {
            #expect(try project("# x\nschemaPath: \(text)").schema.path == "/p/s#1.graphql", "\(text)")
        }
        // A quote in a word begins no quoted text.
        #expect(try project("schemaPath: cook's.graphql # it's").schema.path == "/p/cook's.graphql")
    }

    @Test("The schema is read from a file as Amplify writes it")
    func amplify() throws {
        for text in [Self.written, "\u{FEFF}" + Self.written.replacingOccurrences(of: "\n", with: "\r\n")] {
            let project = try project(text)
            #expect(project.name == "Movies" && project.schema.path == "/p/amplify/backend/schema.graphql")
        }
    }

    @Test(
        "A project without a name is read, in the ways in which YAML writes lists and texts",
        arguments: [
            "schemaPath: 's.graphql' # the schema\nincludes: [a/*.graphql, \"b # c.graphql\"]\nexcludes:\n",
            "# nothing\n---\nschemaPath:   s.graphql\nincludes:\n- a/*.graphql\n- 'b # c.graphql'\n",
            "\"schemaPath\": \"s.graphql\"\nincludes:\n   - a/*.graphql\n\n   # more\n   - \"b \\x23 c.graphql\"\n",
            #"{"schemaPath": "s.graphql", "includes": ["a/*.graphql", "b # c.graphql"]}"#,
            "schemaPath:\ts.graphql\n\"includes\":\t['a/*.graphql', b]\n",
            "schemaPath: s.graphql\nincludes:\n  - https://x.example/a.graphql\n",
        ])
    func forms(text: String) throws {
        // Of a quoted text, only the escapes are read that such files have.
        guard !text.contains(#"\x23"#) else {
            #expect(fault(text) == ".graphqlconfig.yml: line 6: a backslash is followed by what is not read here")
            return
        }
        let project = try project(text)
        #expect(project.name == nil && project.schema.path == "/p/s.graphql")
    }

    @Test(
        "What is not read is refused with its line, and nothing is guessed",
        arguments: [
            ("schemaPath: s\n\tincludes: a", "line 2: a tab"), ("schemaPath: s\n  more: t", "line 2: this is indented"),
            ("schemaPath: |\n  s", "line 1: a value that begins with |"),
            ("schemaPath: &a s", "line 1: a value that begins with &"), ("schemaPath", "line 1: this is no `name"),
            ("a: 1\na: 2", "line 2: this name is here twice"), ("includes:\n  - a: b", "line 2: a list has something"),
            ("includes: [a, [b]]", "line 1: a list in brackets"), ("includes: [a", "line 1: a list in brackets"),
            ("includes: [a] b", "line 1: a list in brackets does not end its line"),
            ("includes: ['a' b]", "line 1: a list in brackets does not end in its line"),
            ("schemaPath: \"s", "line 1: a quoted text does not end"),
            ("schemaPath: 's' t", "line 1: something follows"),
            ("schemaPath: s\nincludes:\n  - *a", "line 3: a value that begins with *"),
            ("schemaPath: s\n---\nincludes: [a]", "line 2: this is no `name"),
            ("a:\n    b: 1\n  c: 2", "line 3: this is indented"), ("- a\nb: c", "line 2: this is indented"),
            ("schemaPath: s\n- includes: a", "line 2: this is indented"),
        ])
    func refused(text: String, message: String) {
        let said = fault(text)
        #expect(said.hasPrefix(".graphqlconfig.yml: \(message)"), "\(said)")
    }

    @Test("A value that begins with a sign of YAML's own is refused with its line, and is no text")
    func ownSigns() {
        for sign in ["{", "|", ">", "&", "*", "!", "%", "@", "`", "]", "}", ",", "?"] {
            let said = fault("schemaPath: s\nextensions: \(sign)a: b")
            #expect(said.hasPrefix(".graphqlconfig.yml: line 2: a value that begins with \(sign) "), "\(said)")
        }
    }

    @Test("Null and a tilde stand for nothing, and every other value is a text", arguments: ["null", "~"])
    func nothing(sign: String) throws {
        #expect(try project("projects: \(sign)\nschemaPath: s.graphql").schema.path == "/p/s.graphql")
        #expect(fault("schemaPath: \(sign)").contains("schemaPath: this is missing"))
        for (value, name) in [("true", "true"), ("7", "7"), ("1.5", "1.5"), ("'null'", "null")] {
            #expect(try project("schemaPath: \(value)").schema.lastPathComponent == name)
        }
    }

    @Test("A file that says too little is refused with the place")
    func meaning() {
        #expect(fault("").contains("schemaPath: this is missing"))
        #expect(fault("schemaPath: [s]").contains("schemaPath: this is a list"))
        #expect(fault("schemaPath: s", named: "x").contains("name none"))
        #expect(fault(Self.written, named: "x").contains(#"there is "Movies""#))
        #expect(
            fault("projects:\n  a:\n    schemaPath: s\n  b:\n    schemaPath: t").contains("there are several (a, b)"))
        #expect(fault("projects: a").contains("projects: this is a string"))
        #expect(fault("{\"schemaPath\": ").contains("begins as JSON"))
        #expect(fault(String(repeating: " ", count: 1 << 20) + "a: b").contains("more than 1 MiB"))
        #expect(fault(String(repeating: " ", count: (1 << 20) - 4) + "a: b").contains("more than 1 MiB") == false)
    }

    @Test("Bytes that are no text, and texts of any bytes, end in an error or a project", arguments: 0..<300)
    func garbage(seed: Int) throws {
        var random = SeededNumbers(seed: UInt64(seed))
        var bytes = Array(Self.written.utf8)
        let signs = Array("\t\"'[]{}:-#\\ \n,~&*\u{0}é".utf8) + [0xFF]
        for _ in 0..<Int.random(in: 1...20, using: &random) {
            let place = Int.random(in: bytes.indices, using: &random)
            bytes[place] = signs[Int.random(in: signs.indices, using: &random)]
        }
        do {
            _ = try GraphQLProject(bytes, origin: "f", folder: Self.folder, named: nil)
        } catch {
            #expect(error.code == .environment)
        }
    }

    @Test("Very deep nesting is refused")
    func deep() {
        let text = (0..<1_000).map { String(repeating: " ", count: $0) + "a:" }.joined(separator: "\n")
        #expect(fault(text).contains("nested more than 32 deep"))
    }

    @Test("A schema's path may be absolute, and is then not looked for in the file's folder")
    func absolutePath() throws {
        #expect(try project("schemaPath: /elsewhere/s.graphql").schema.path == "/elsewhere/s.graphql")
        #expect(try project("schemaPath: below/s.graphql").schema.path == "/p/below/s.graphql")
    }
}
