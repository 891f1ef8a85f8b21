extension DocumentValidator {
    mutating func checkDefinitions(of variables: [VariableDefinition]) {
        var names: Set<String> = []
        for variable in variables {
            if !names.insert(variable.name).inserted {
                report(.variableUniqueness, "Variable $\(variable.name) is defined twice", at: variable.location)
            }
            check(variable.directives, at: .variableDefinition)
            guard let type = schema.resolve(variable.type), schema.types[type.named].kind.isInput else {
                let message = "Variable $\(variable.name) is of \(variable.type.name), which is no input type"
                report(.variablesAreInputTypes, message, at: variable.location)
                continue
            }
            if let value = variable.defaultValue {
                check(
                    value, is: type, placeHasDefault: false, place: "the default of $\(variable.name)",
                    at: variable.location)
            }
        }
    }

    /// Checks the variables of each operation against all their uses in what it reaches.
    mutating func checkVariables() {
        var reported: Set<ReportedUse> = []
        for (operation, own) in zip(document.operations, operationUses) {
            var definitions: [String: VariableDefinition] = [:]
            for variable in operation.variables where definitions[variable.name] == nil {
                definitions[variable.name] = variable
            }
            var used: Set<String> = []
            for part in [own] + reachedFragments(from: own).map({ fragmentUses[$0] }) {
                guard budget.spend(part.variables.count + 1) else { return }
                for use in part.variables {
                    used.insert(use.name)
                    guard let fault = fault(of: use, definition: definitions[use.name], in: operation) else { continue }
                    // A fragment's fault is told once and not for each operation that it is the same in.
                    guard reported.insert(.init(message: fault.message, location: use.location)).inserted else {
                        continue
                    }
                    report(fault.rule, fault.message, at: use.location)
                }
            }
            for variable in operation.variables where !used.contains(variable.name) {
                report(.allVariablesUsed, "Variable $\(variable.name) is never used", at: variable.location)
            }
        }
    }

    private struct ReportedUse: Hashable {
        var message: String
        var location: Location
    }

    /// The fragments that are spread in a definition, and in those, and so on; each once.
    private mutating func reachedFragments(from uses: DefinitionUses) -> [Int] {
        var reached: [Int] = []
        var seen: Set<Int> = []
        var waiting = uses.spreads
        while let spread = waiting.popLast() {
            guard seen.insert(spread.fragment).inserted else { continue }
            reached.append(spread.fragment)
            let spreads = fragmentUses[spread.fragment].spreads
            guard budget.spend(spreads.count + 1) else { break }
            waiting += spreads
        }
        return reached
    }

    private func fault(
        of use: DefinitionUses.VariableUse, definition: VariableDefinition?, in operation: OperationDefinition
    ) -> (rule: ValidationRule, message: String)? {
        guard let definition else {
            let place = operation.name.map { "operation \($0)" } ?? "the operation"
            return (.allVariableUsesDefined, "Variable $\(use.name) is not defined by \(place)")
        }
        guard let expected = use.expected, let type = schema.resolve(definition.type),
            schema.types[type.named].kind.isInput
        else { return nil }
        let hasDefault = definition.defaultValue.map { $0 != .null } ?? false
        let isSatisfied = hasDefault || use.placeHasDefault
        let wanted = expected.isNonNull && !type.isNonNull && isSatisfied ? expected.nullable : expected
        guard !isCompatible(type, with: wanted) else { return nil }
        let message =
            "Variable $\(use.name) of type \(definition.type) stands where "
            + "\(schema.description(of: expected)) is expected"
        return (.allVariableUsagesAreAllowed, message)
    }

    /// `AreTypesCompatible` of section 5.8.5. Recurses as deep as lists nest in a type, which is bounded.
    private func isCompatible(_ type: ResolvedType, with expected: ResolvedType) -> Bool {
        if expected.isNonNull {
            return type.isNonNull && isCompatible(type.nullable, with: expected.nullable)
        }
        let type = type.nullable
        if let expectedElement = expected.element {
            guard let element = type.element else { return false }
            return isCompatible(element, with: expectedElement)
        }
        return !type.isList && type.named == expected.named
    }
}
