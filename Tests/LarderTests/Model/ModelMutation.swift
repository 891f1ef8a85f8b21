import Foundation
import Larder

/// What a mutation of the model asks of the server.
struct ModelChange: Equatable {
    enum Kind: String, CaseIterable {
        case add, rate, unlist
    }

    var kind: Kind
    /// Unlike any other mutation's: by which the server's effects are told apart.
    var tag: Int
    /// An id, which may be a temporary one; empty where the recipe is to be made.
    var recipe = ""
    var stars = 0

    var title: String { "title \(tag)" }

    var variables: [String: Value] {
        var variables: [String: Value] = ["tag": .int(Int64(tag))]
        switch kind {
        case .add: variables["title"] = .string(title)
        case .rate:
            variables["recipe"] = .string(recipe)
            variables["stars"] = .int(Int64(stars))
        case .unlist: variables["recipe"] = .string(recipe)
        }
        return variables
    }

    var operation: GraphQLOperation {
        let document =
            switch kind {
            case .add: "mutation Add($tag: Int!, $title: String!) { add(tag: $tag, title: $title) { id title stars } }"
            case .rate:
                "mutation Rate($tag: Int!, $recipe: ID!, $stars: Int!) "
                    + "{ rate(tag: $tag, recipe: $recipe, stars: $stars) { id stars } }"
            case .unlist: "mutation Unlist($tag: Int!, $recipe: ID!) { unlist(tag: $tag, recipe: $recipe) { id } }"
            }
        return GraphQLOperation(document, variables: variables)
    }

    /// The data of an answer to it.
    func data(_ effect: ModelEffect) -> Value {
        var members: [String: Value] = ["__typename": "Recipe", "id": .string(effect.recipe)]
        for (name, field) in effect.fields { members[name] = field.value }
        return .object([kind.rawValue: .object(members)])
    }
}

/// A mutation that is queued or set aside, as plain values.
struct ModelMutation {
    var id: MutationID
    /// Its place in the order.
    var place: Int
    var lane: String
    var change: ModelChange
    /// By which the server knows a repeat; nil until it is seen, where the runner has made a new one.
    var key: String?
    /// Others that it may not be taken for.
    var formerKeys: Set<String> = []
    var dependencies: Set<MutationID> = []
    /// The temporary id that it stands for until the server has answered.
    var reserved: String?
    var optimistic: ModelEffect?
    var listChanges: [ModelListChange] = []
    var resolver: String?
    var check: String?
    var expires: Date?

    var state = MutationStatus.State.pending
    var notBefore: Date?
    /// When `notBefore` was worked out.
    var notBeforeSet: Date?
    /// How often somebody had signed in when it was last begun.
    var signIns = 0
    var attempts = 0
    var failure: String?
    /// What the server answered, where that is noted and the mutation is not settled; nil in it where nothing is known.
    var answer: ModelEffect?
    /// Whether the answer is in the cache.
    var isStored = false
    /// How often somebody had it sent again.
    var replays = 0
    /// Whether it waits, or waited, for others of whatever lane.
    var hadDependencies = false

    /// Whether an attempt may have taken effect that is to be repeated, or was replayed.
    var isInDoubt = false
    /// Which pause of the server was the last when it was last begun.
    var pauseTurn = 0

    /// Whether the failure says that it may have taken effect.
    var leavesDoubt: Bool { failure == "outcomeUnknown" || failure == "serverFault" }

    /// The ids in it that may be temporary.
    var recipes: Set<String> {
        Set([change.recipe] + (optimistic.map { [$0.recipe] } ?? []) + listChanges.map(\.recipe)).subtracting([""])
    }

    mutating func replace(_ token: String, by real: String, inVariables: Bool) {
        if inVariables, change.recipe == token { change.recipe = real }
        if optimistic?.recipe == token { optimistic?.recipe = real }
        for index in listChanges.indices where listChanges[index].recipe == token { listChanges[index].recipe = real }
    }
}

/// How a mutation ended that is neither queued nor set aside any more.
struct ModelOutcome: Equatable {
    var state: MutationStatus.State
    var failure: String?
    /// The recipe in the answer's data.
    var recipe: String?
}
