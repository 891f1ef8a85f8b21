extension Parser {
    mutating func parseDocument() throws(SyntaxError) -> Document {
        var document = Document()
        repeat {
            if isKeyword("fragment") {
                document.fragments.append(try parseFragmentDefinition())
            } else {
                document.operations.append(try parseOperationDefinition())
            }
        } while token.kind != .end
        return document
    }

    private mutating func parseOperationDefinition() throws(SyntaxError) -> OperationDefinition {
        let location = token.location
        if token.kind == .braceOpen {
            return OperationDefinition(kind: .query, selections: try parseSelections(), location: location)
        }
        let kind: OperationKind
        if try skipKeyword("query") {
            kind = .query
        } else if try skipKeyword("mutation") {
            kind = .mutation
        } else if try skipKeyword("subscription") {
            kind = .subscription
        } else {
            throw unexpected("an operation or a fragment")
        }
        let name = token.kind == .name ? try parseName() : nil
        let variables = try parseVariableDefinitions()
        let directives = try parseDirectives(isConstant: false)
        return OperationDefinition(
            kind: kind, name: name, variables: variables, directives: directives,
            selections: try parseSelections(), location: location)
    }

    private mutating func parseVariableDefinitions() throws(SyntaxError) -> [VariableDefinition] {
        guard try skip(.parenthesisOpen) else { return [] }
        var variables: [VariableDefinition] = []
        repeat {
            let location = token.location
            try expect(.dollar)
            let name = try parseName()
            try expect(.colon)
            let type = try parseType()
            let defaultValue = try skip(.equals) ? try parseLiteral(isConstant: true) : nil
            let directives = try parseDirectives(isConstant: true)
            variables.append(
                VariableDefinition(
                    name: name, type: type, defaultValue: defaultValue, directives: directives,
                    location: location))
        } while try !skip(.parenthesisClose)
        return variables
    }

    private mutating func parseFragmentDefinition() throws(SyntaxError) -> FragmentDefinition {
        let location = token.location
        try expectKeyword("fragment")
        guard !isKeyword("on") else { throw unexpected("a fragment's name") }
        let name = try parseName()
        try expectKeyword("on")
        let typeCondition = try parseName()
        let directives = try parseDirectives(isConstant: false)
        return FragmentDefinition(
            name: name, typeCondition: typeCondition, directives: directives,
            selections: try parseSelections(), location: location)
    }

    private mutating func parseSelections() throws(SyntaxError) -> [Selection] {
        try enter()
        try expect(.braceOpen)
        var selections: [Selection] = []
        repeat {
            selections.append(token.kind == .spread ? try parseFragment() : .field(try parseField()))
        } while try !skip(.braceClose)
        leave()
        return selections
    }

    private mutating func parseField() throws(SyntaxError) -> Field {
        // What recurses stands apart from what does not, to keep the recursion's stack frames small.
        var field = try parseFieldHead()
        if token.kind == .braceOpen { field.selections = try parseSelections() }
        return field
    }

    private mutating func parseFieldHead() throws(SyntaxError) -> Field {
        let location = token.location
        var name = try parseName()
        var alias: String?
        if try skip(.colon) {
            alias = name
            name = try parseName()
        }
        let arguments = try parseArguments(isConstant: false)
        let directives = try parseDirectives(isConstant: false)
        return Field(alias: alias, name: name, arguments: arguments, directives: directives, location: location)
    }

    private mutating func parseFragment() throws(SyntaxError) -> Selection {
        let head = try parseFragmentHead()
        guard case .inlineFragment(var fragment) = head else { return head }
        fragment.selections = try parseSelections()
        return .inlineFragment(fragment)
    }

    /// A spread, or an inline fragment up to its selections.
    private mutating func parseFragmentHead() throws(SyntaxError) -> Selection {
        let location = token.location
        try expect(.spread)
        if token.kind == .name, !isKeyword("on") {
            let name = try parseName()
            let directives = try parseDirectives(isConstant: false)
            return .fragmentSpread(FragmentSpread(name: name, directives: directives, location: location))
        }
        let typeCondition = try skipKeyword("on") ? try parseName() : nil
        let directives = try parseDirectives(isConstant: false)
        return .inlineFragment(
            InlineFragment(typeCondition: typeCondition, directives: directives, selections: [], location: location))
    }
}
