public import LarderRecords

/// Works out what a mutation does to lists, where that depends on what the server answers.
///
/// A mutation names its updater, and the store knows it by this name: `Store.Options.updaters`. It is called with the
/// optimistic response, for what is shown meanwhile, and with the answer, for what is stored; after a restart as well.
/// It must depend on nothing but what it is given, must not wait, and must not use the store: it is called in the
/// middle of reads and writes.
///
/// ```swift
/// options.updaters["shelve"] = { mutation in
///     guard let id = mutation.response["addRecipe"]?["id"]?.string else { return [] }
///     return [.insert("Recipe:\(id)", into: "recipes", at: .start)]
/// }
/// ```
public typealias ListUpdater = @Sendable (AnsweredMutation) throws -> [ListChange]

/// A mutation and what it was answered, or is expected to be.
public struct AnsweredMutation: Sendable {
    /// The mutation, as it was queued but for real ids in the places of other mutations' temporary ones.
    public let operation: GraphQLOperation
    /// The answer.
    public let response: Response
}
