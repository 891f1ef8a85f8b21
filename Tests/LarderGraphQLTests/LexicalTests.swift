import LarderGraphQL
import Testing

@Suite("Lexical tokens")
struct LexicalTests {
    @Test(
        "Numbers keep their text and their kind",
        arguments: [
            ("0", Literal.int("0")), ("-0", .int("-0")), ("42", .int("42")), ("-17", .int("-17")),
            ("123456789012345678901234567890", .int("123456789012345678901234567890")),
            ("1.0", .float("1.0")), ("-0.5", .float("-0.5")), ("1e10", .float("1e10")), ("1E-3", .float("1E-3")),
            ("6.02e+23", .float("6.02e+23")), ("0e0", .float("0e0")),
        ])
    func numbers(text: String, literal: Literal) throws {
        #expect(try parsedLiteral(text) == literal)
    }

    @Test(
        "A malformed number is refused where it stops being one",
        arguments: [
            ("00", "1:7: Invalid number, unexpected digit after 0: '0'"),
            ("01", "1:7: Invalid number, unexpected digit after 0: '1'"),
            ("-", "1:7: Invalid number, expected a digit, found ')'"),
            ("-a", "1:7: Invalid number, expected a digit, found 'a'"),
            ("+1", "1:6: Unexpected character '+'"),
            ("1.", "1:8: Invalid number, expected a digit, found ')'"),
            (".5", "1:6: Unexpected character '.'"),
            ("1.e3", "1:8: Invalid number, expected a digit, found 'e'"),
            ("1e", "1:8: Invalid number, expected a digit, found ')'"),
            ("1e+", "1:9: Invalid number, expected a digit, found ')'"),
            ("0x1F", "1:7: Invalid number, it is followed by 'x'"),
            ("12abc", "1:8: Invalid number, it is followed by 'a'"),
            ("1_000", "1:7: Invalid number, it is followed by '_'"),
            ("1.5f", "1:9: Invalid number, it is followed by 'f'"),
            ("1.2.3", "1:9: Invalid number, it is followed by '.'"),
            ("1e5e5", "1:9: Invalid number, it is followed by 'e'"),
        ])
    func notNumbers(text: String, fault: String) {
        #expect(syntaxFault("{f(a:\(text))}") == fault)
    }

    @Test(
        "Strings mean what their escapes say",
        arguments: [
            (#""""#, ""), (#""plain""#, "plain"), (#""a\"b""#, "a\"b"), (#""\\\/\b\f\n\r\t""#, "\\/\u{8}\u{C}\n\r\t"),
            (#""\u00e9\u00E9""#, "éé"), (#""\uD83D\uDE00""#, "😀"),
            (#""\u{1F600}\u{41}\u{0010FFFF}""#, "😀A\u{10FFFF}"),
            (#""snow ☃ and 😀""#, "snow ☃ and 😀"),
            ("\"# no comment\"", "# no comment"), ("\"tab\there\"", "tab\there"),
        ])
    func strings(text: String, value: String) throws {
        #expect(try parsedLiteral(text) == .string(value))
    }

    @Test(
        "Bad strings are refused at the bad character",
        arguments: [
            (#""open"#, "1:13: Unterminated string"),
            ("\"line\nbreak\"", "1:11: Unterminated string"),
            (#""\x""#, #"1:7: Invalid escape sequence, '\' before 'x'"#),
            (#""\"#, #"1:7: Invalid escape sequence, '\' before ')'"#),
            (#""\u12""#, #"1:7: Invalid Unicode escape sequence '\u12'"#),
            (#""\u12G4""#, #"1:7: Invalid Unicode escape sequence '\u12'"#),
            (#""\uD83D""#, #"1:7: Invalid Unicode escape sequence '\uD83D'"#),
            (#""\uD83D\u0041""#, #"1:7: Invalid Unicode escape sequence '\uD83D'"#),
            (#""\uDE00\uD83D""#, #"1:7: Invalid Unicode escape sequence '\uDE00'"#),
            (#""\u{110000}""#, #"1:7: Invalid Unicode escape sequence '\u{110000}'"#),
            (#""\u{D800}""#, #"1:7: Invalid Unicode escape sequence '\u{D800}'"#),
            (#""\u{}""#, #"1:7: Invalid Unicode escape sequence '\u{}'"#),
            ("\"a\u{0}b\"", "1:8: Invalid character U+0000 in a string"),
            ("\"☃☃☃\u{7}\"", "1:10: Invalid character U+0007 in a string"),
        ])
    func badStrings(text: String, fault: String) {
        #expect(syntaxFault("{f(a:\(text))}") == fault)
    }

    @Test(
        "Block strings lose their common indentation and their blank ends",
        arguments: [
            (#""""""""#, ""), (#""""simple""""#, "simple"), (#"""" white space """"#, " white space "),
            (#""""contains " and \""" quotes""""#, "contains \" and \"\"\" quotes"),
            (#""""raw \n \u00e9""""#, #"raw \n \u00e9"#),
            (
                "\"\"\"\n    Hello,\n      World!\n\n    Yours,\n      GraphQL.\n  \"\"\"",
                "Hello,\n  World!\n\nYours,\n  GraphQL."
            ),
            ("\"\"\"\r\n  a\r  b\n\r\n  c\"\"\"", "a\nb\n\nc"),
            ("\"\"\"  first\n    second\"\"\"", "  first\nsecond"),
            ("\"\"\"\n\t\ttab\n\t\t\tdeeper\"\"\"", "tab\n\tdeeper"),
            ("\"\"\"\n \n\t\n\"\"\"", ""),
        ])
    func blockStrings(text: String, value: String) throws {
        #expect(try parsedLiteral(text) == .string(value))
    }

    @Test("An unterminated block string says where it starts and where the text ends")
    func openBlockString() {
        #expect(syntaxFault("{f(a:\n\"\"\"open\n\\\"\"\"") == "3:5: Unterminated block string, which starts at 2:1")
    }

    @Test("Commas, comments, line ends and byte order marks lie between tokens")
    func ignored() throws {
        let text = "\u{FEFF}# été ☃\r\n{,,a,\r b # c }\n\u{FEFF}c\t}"
        let document = try Document(parsing: text)
        let names = document.operations[0].selections.map { selection in
            if case .field(let field) = selection { "\(field.name) \(field.location)" } else { "" }
        }
        #expect(names == ["a 2:4", "b 3:2", "c 4:2"])
    }

    @Test("Columns count Unicode scalars, not bytes")
    func columns() {
        #expect(syntaxFault("{ a(x: \"é☃😀\") ? }") == "1:15: Unexpected character '?'")
        #expect(syntaxFault("\u{FEFF}?") == "1:1: Unexpected character '?'")
    }

    @Test(
        "Characters outside of ASCII, controls and strange punctuation are no tokens",
        arguments: [
            ("{ é }", "1:3: Unexpected character 'é'"), ("{ a☃ }", "1:4: Unexpected character '☃'"),
            ("{ a..b }", "1:4: Unexpected character '.'"), ("{ a.b.c }", "1:4: Unexpected character '.'"),
            ("{ a\u{0} }", "1:4: Unexpected character U+0000"),
            ("{ 'a' }", "1:3: Unexpected character '''"), ("{ a; }", "1:4: Unexpected character ';'"),
            ("{ a\u{A0}b }", "1:4: Unexpected character U+00A0"),
        ])
    func badCharacters(text: String, fault: String) {
        #expect(syntaxFault(text) == fault)
    }
}
