import LarderGraphQL
import LarderTestSupport

/// Makes random documents that follow the grammar and hardly ever a schema.
struct DocumentGenerator {
    private static let names = ["a", "dog", "pet", "name", "id", "query", "on", "fragment", "_x1", "__typename", "F"]
    private static let strings = [
        "", "s", "\"", "\\", "\n\r\t", "é☃😀", "\u{0}\u{1F}\u{7F}", "\"\"\"", "# no", "\u{FEFF}",
    ]
    private var random: SeededNumbers

    init(seed: UInt64) { random = SeededNumbers(seed: seed) }

    mutating func document() -> Document {
        var document = Document()
        for _ in 0..<Int.random(in: 1...2, using: &random) {
            let kind = [OperationKind.query, .mutation, .subscription][Int.random(in: 0..<3, using: &random)]
            let variables = list(upTo: 2) { generator in
                VariableDefinition(
                    name: generator.name(), type: generator.type(depth: 0),
                    defaultValue: generator.flip() ? generator.literal(depth: 0, isConstant: true) : nil,
                    directives: generator.directives(isConstant: true))
            }
            document.operations.append(
                OperationDefinition(
                    kind: kind, name: flip() ? name() : nil, variables: variables,
                    directives: directives(), selections: selections(depth: 0)))
        }
        document.fragments = list(upTo: 2) { generator in
            FragmentDefinition(
                name: generator.fragmentName(), typeCondition: generator.name(), directives: generator.directives(),
                selections: generator.selections(depth: 0))
        }
        return document
    }

    private mutating func flip() -> Bool { Bool.random(using: &random) }

    private mutating func name() -> String { Self.names[Int.random(in: Self.names.indices, using: &random)] }

    private mutating func fragmentName() -> String {
        let name = name()
        return name == "on" ? "F" : name
    }

    private mutating func list<Element>(
        from fewest: Int = 0, upTo most: Int, _ make: (inout Self) -> Element
    ) -> [Element] {
        (0..<Int.random(in: fewest...most, using: &random)).map { _ in make(&self) }
    }

    private mutating func type(depth: Int) -> TypeReference {
        let inner: TypeReference = depth < 3 && flip() ? .list(type(depth: depth + 1)) : .named(name())
        return flip() ? .nonNull(inner) : inner
    }

    private mutating func directives(isConstant: Bool = false) -> [Directive] {
        list(upTo: 1) { Directive(name: $0.name(), arguments: $0.arguments(isConstant: isConstant)) }
    }

    private mutating func arguments(isConstant: Bool = false) -> [Argument] {
        list(upTo: 2) { Argument(name: $0.name(), value: $0.literal(depth: 0, isConstant: isConstant)) }
    }

    private mutating func selections(depth: Int) -> [Selection] {
        list(from: 1, upTo: 3) { generator in
            switch Int.random(in: 0..<6, using: &generator.random) {
            case 0:
                .fragmentSpread(
                    FragmentSpread(name: generator.fragmentName(), directives: generator.directives()))
            case 1 where depth < 4:
                .inlineFragment(
                    InlineFragment(
                        typeCondition: generator.flip() ? generator.name() : nil, directives: generator.directives(),
                        selections: generator.selections(depth: depth + 1)))
            default:
                .field(
                    Field(
                        alias: generator.flip() ? generator.name() : nil, name: generator.name(),
                        arguments: generator.arguments(), directives: generator.directives(),
                        selections: depth < 4 && generator.flip() ? generator.selections(depth: depth + 1) : []))
            }
        }
    }

    private mutating func literal(depth: Int, isConstant: Bool) -> Literal {
        switch Int.random(in: 0..<9, using: &random) {
        case 0 where !isConstant: .variable(name())
        case 1: .int(["0", "-0", "12", "-99999999999999999999"][Int.random(in: 0..<4, using: &random)])
        case 2: .float(["0.5", "-1e9", "1.25E-3"][Int.random(in: 0..<3, using: &random)])
        case 3: .string(Self.strings[Int.random(in: Self.strings.indices, using: &random)])
        case 4: .boolean(flip())
        case 5: .null
        case 6 where depth < 4: .list(list(upTo: 3) { $0.literal(depth: depth + 1, isConstant: isConstant) })
        case 7 where depth < 4:
            .object(
                list(upTo: 3) {
                    .init(name: $0.name(), value: $0.literal(depth: depth + 1, isConstant: isConstant))
                })
        default: .enumeration(name())
        }
    }
}
