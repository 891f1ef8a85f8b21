package import Larder
import LarderTestSupport
import Synchronization

/// A server that no power cut reaches: it tells repeats by their key, and says what it has done when it has done it.
///
/// With a seed, requests are lost now and then, and answers.
package final class RecipeLedger: GraphQLTransport {
    /// What a mutation did.
    package enum Effect: Sendable, Hashable {
        case added(recipe: String, title: String)
        case rated(recipe: String, stars: Int)

        /// The number by which the load tells its mutations apart.
        package var tag: Int? {
            switch self {
            case .added(_, let title): title.split(separator: "-").last.flatMap { Int($0) }
            case .rated(_, let stars): stars
            }
        }

        package var words: String {
            switch self {
            case .added(let recipe, let title): "added \(recipe) \(title)"
            case .rated(let recipe, let stars): "rated \(recipe) \(stars)"
            }
        }

        package init?(words: [String]) {
            guard words.count == 3 else { return nil }
            switch words[0] {
            case "added": self = .added(recipe: words[1], title: words[2])
            case "rated":
                guard let stars = Int(words[2]) else { return nil }
                self = .rated(recipe: words[1], stars: stars)
            default: return nil
            }
        }
    }

    package struct Recipe: Sendable, Hashable {
        package var title: String
        package var stars: Int
    }

    fileprivate struct State {
        var recipes = ["r0": Recipe(title: "Soup", stars: 0), "r1": Recipe(title: "Bread", stars: 0)]
        var answers: [String: String] = [:]
        var effects: [Effect] = []
        var random: SeededNumbers?
    }

    package let idempotency: Idempotency? = .header(name: "Idempotency-Key")
    private let state: Mutex<State>
    private let took: @Sendable (_ key: String, Effect) -> Void

    /// - Parameters:
    ///   - earlier: What it has done so far, each with its key.
    ///   - took: Told of each effect, before anybody is answered.
    package init(
        after earlier: [(key: String, effect: Effect)] = [], losingBySeed seed: UInt64? = nil,
        took: @escaping @Sendable (_ key: String, Effect) -> Void = { _, _ in }
    ) {
        var state = State(random: seed.map { SeededNumbers(seed: $0) })
        for (key, effect) in earlier { state.carryOut(effect, key) }
        self.state = Mutex(state)
        self.took = took
    }

    package var recipes: [String: Recipe] { state.withLock { $0.recipes } }
    package var effects: [Effect] { state.withLock { $0.effects } }

    package func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let chance = state.withLock { $0.random?.next() ?? .max } % 10
        if chance == 0 { throw TransportError(.unreachable, "the request was lost") }
        guard case .object(let variables)? = try? Value(json: request.variables),
            let key = request.headers.first(where: { $0.name == "Idempotency-Key" })?.value
        else { throw TransportError(.unusableRequest, "the request has no variables or no key") }
        let answer = try answer(variables, key)
        if chance == 1 { throw TransportError(.interrupted, "the answer was lost") }
        return GraphQLAnswer(body: Array(answer.utf8), status: 200)
    }

    private func answer(_ variables: [String: Value], _ key: String) throws(TransportError) -> String {
        let answer: String? = state.withLock { state -> String? in
            if let known = state.answers[key] { return known }
            let effect: Effect
            if case .string(let title)? = variables["title"] {
                if title.hasPrefix("refused") { return #"{"data":null,"errors":[{"message":"not this one"}]}"# }
                effect = .added(recipe: "r\(state.recipes.count)", title: title)
            } else if case .string(let recipe)? = variables["recipe"], case .int(let stars)? = variables["stars"] {
                guard state.recipes[recipe] != nil else {
                    return #"{"data":null,"errors":[{"message":"no such recipe"}]}"#
                }
                effect = .rated(recipe: recipe, stars: Int(stars))
            } else {
                return nil
            }
            took(key, effect)
            return state.carryOut(effect, key)
        }
        guard let answer else { throw TransportError(.unusableRequest, "the request is not understood") }
        return answer
    }
}

extension RecipeLedger.State {
    @discardableResult
    fileprivate mutating func carryOut(_ effect: RecipeLedger.Effect, _ key: String) -> String {
        effects.append(effect)
        let (id, field): (String, String)
        switch effect {
        case .added(let recipe, let title):
            recipes[recipe] = RecipeLedger.Recipe(title: title, stars: 0)
            (id, field) = (recipe, "add")
        case .rated(let recipe, let stars):
            recipes[recipe]?.stars = stars
            (id, field) = (recipe, "rate")
        }
        let recipe = recipes[id] ?? RecipeLedger.Recipe(title: "", stars: 0)
        let object = #"{"__typename":"Recipe","id":"\#(id)","title":"\#(recipe.title)","stars":\#(recipe.stars)}"#
        let answer = #"{"data":{"\#(field)":\#(object)}}"#
        answers[key] = answer
        return answer
    }
}
