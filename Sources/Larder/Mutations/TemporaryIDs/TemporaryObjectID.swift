public import LarderGraphQL
import LarderOperations

/// Stands for the id of an object that the server has yet to create.
///
/// It goes wherever the id would: into variables and optimistic responses, of the mutation that creates the object and
/// of later ones, which then wait for it.
public struct TemporaryObjectID: Sendable, Hashable {
    let token: TemporaryID

    /// A new one, unlike any other.
    public init() { token = TemporaryID() }

    /// The id in the form in which it is put into variables.
    public var value: Value { .string(token.text) }

    /// The id as text.
    public var text: String { token.text }
}
