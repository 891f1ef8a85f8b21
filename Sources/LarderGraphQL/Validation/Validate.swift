/// Checks an executable document against a schema.
///
/// Fragments that no operation uses are let pass, so that files can be joined before they are checked.
/// - Parameter budget: How many steps the checks may take whose cost can grow faster than the document: following
///   fragments and merging fields. A document that needs more is refused with an error of the rule `complexity`.
/// - Returns: The errors, in the order of their locations; none if the document can be run. No more than
///   ``DocumentValidator/mostErrors``.
package func validate(
    _ document: Document, against schema: SchemaIndex, budget: Int = 10_000_000
) -> [ValidationError] {
    var validator = DocumentValidator(document, schema: schema, budget: budget)
    return validator.validate()
}
