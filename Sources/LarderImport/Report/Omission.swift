/// What was not taken, and why: all of one kind and reason together.
package struct Omission: Sendable, Hashable, Codable {
    /// What was left.
    package enum Item: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
        /// A row of the source's cache, with all that it says.
        case record
        /// A field of an object, or of the root of all queries.
        case field
        case mutation

        package static func < (left: Item, right: Item) -> Bool { left.rawValue < right.rawValue }
    }

    /// Why it was left.
    package enum Reason: String, Sendable, Hashable, Codable, CaseIterable, Comparable {
        /// The row cannot be read: no key, or no JSON object.
        case unreadable
        /// The row is larger than what may be read.
        case tooLarge
        /// The root of mutations or subscriptions, which is never stored.
        case operationRoot
        /// It does not say its type, and neither its key nor the schema does.
        case noType
        /// The schema has no object type of that name.
        case unknownType
        /// It lacks what identifies it, and nothing that was taken holds it.
        case unreferenced
        /// The schema has no such field.
        case unknownField
        /// The text of its arguments can be read in no way that the schema allows.
        case argumentsNotUnderstood
        /// The text of its arguments can be read in several ways.
        case argumentsAmbiguous
        /// Its value does not fit its type.
        case wrongValue
        /// It refers to what the source does not have.
        case danglingReference
        /// Two rows that are one object say different things of it.
        case contradictory
        /// Some elements of a list know it, and others do not.
        case unevenElements
        /// Larger or deeper than what is taken in one piece.
        case tooDeep
        /// The store knows that what it refers to is no more.
        case deletedHere
        /// The store refused it; the example says how.
        case refused
        /// It was being sent: whether the server has it is not known.
        case outcomeUnknown
        /// The server has it.
        case done
        /// A file goes with it.
        case hasFile
        /// It was not asked for.
        case notAsked

        package static func < (left: Reason, right: Reason) -> Bool { left.rawValue < right.rawValue }

        /// What it means, for people.
        package var text: String {
            switch self {
            case .unreadable: "cannot be read"
            case .tooLarge: "larger than what is read"
            case .operationRoot: "answers of mutations and subscriptions have no root in a cache"
            case .noType: "does not say its __typename"
            case .unknownType: "of a type that the schema does not have"
            case .unreferenced: "has no identity, and nothing that was taken holds it"
            case .unknownField: "the schema has no such field"
            case .argumentsNotUnderstood: "the text of its arguments does not fit the schema"
            case .argumentsAmbiguous: "the text of its arguments can be read in several ways"
            case .wrongValue: "its value does not fit its type"
            case .danglingReference: "refers to what the file does not have"
            case .contradictory: "several records that are one object contradict each other"
            case .unevenElements: "only some elements of its list know it"
            case .tooDeep: "too large or too deep"
            case .deletedHere: "refers to what is known to be deleted"
            case .refused: "the store refused it"
            case .outcomeUnknown: "was being sent, and the server may have it: look there, and make it again if not"
            case .done: "the server has it already"
            case .hasFile: "has a file with it, which cannot be taken over"
            case .notAsked: "mutations were not asked for"
            }
        }
    }

    package var item: Item
    package var reason: Reason
    package var count: Int
    /// The first few, as people can find them in the source.
    package var examples: [String]
}
