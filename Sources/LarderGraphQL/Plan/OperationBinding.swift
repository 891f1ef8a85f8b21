/// What a plan's templates say for one set of variables.
package struct OperationBinding: Sendable {
    /// With defaults filled in; what the program left out and has no default is missing.
    package let variables: [String: Value]
    /// By `Plan.keys`.
    package let fieldKeys: [String]
    /// By `Plan.policies`.
    package let policyTargets: [PolicyTarget]

    /// - Parameter variables: As `coerce` returns them.
    package init(_ plan: Plan, variables: [String: Value], schema: SchemaIndex) {
        self.variables = variables
        fieldKeys = plan.keys.map { $0.key(variables, schema) }
        policyTargets = plan.policies.map { $0.target(variables) }
    }
}
