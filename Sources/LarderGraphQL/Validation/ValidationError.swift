/// Why a document that parses cannot be run against a schema.
package struct ValidationError: Error, Sendable, Hashable, CustomStringConvertible {
    package var rule: ValidationRule
    package var message: String
    package var location: Location

    package init(rule: ValidationRule, message: String, location: Location) {
        self.rule = rule
        self.message = message
        self.location = location
    }

    package var description: String { "\(location): \(message)" }
}

/// The rules of section 5 of the specification, by its headings.
package enum ValidationRule: String, Sendable, Hashable, CaseIterable {
    case operationNameUniqueness, loneAnonymousOperation, singleRootField, knownOperationType
    case fieldSelections, leafFieldSelections, fieldSelectionMerging
    case argumentNames, argumentUniqueness, requiredArguments
    case fragmentNameUniqueness, fragmentSpreadTypeExistence, fragmentsOnCompositeTypes
    case fragmentSpreadTargetDefined, fragmentSpreadsMustNotFormCycles, fragmentSpreadIsPossible
    case valuesOfCorrectType, inputObjectFieldNames, inputObjectFieldUniqueness, inputObjectRequiredFields
    case directivesAreDefined, directivesAreInValidLocations, directivesAreUniquePerLocation
    case variableUniqueness, variablesAreInputTypes, allVariableUsesDefined, allVariablesUsed
    case allVariableUsagesAreAllowed
    /// Not the specification's: the document is so entangled, or so deep, that checking it further was given up.
    case complexity
}
