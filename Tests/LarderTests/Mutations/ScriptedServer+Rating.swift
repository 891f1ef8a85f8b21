import Larder
import LarderTestSupport

func rated(_ recipe: String, _ rating: Int) -> String {
    #"{"data":{"rate":{"__typename":"Recipe","id":"\#(recipe)","title":"Soup","rating":\#(rating)}}}"#
}

extension ScriptedServer {
    /// What was asked for, done.
    static func done(_ request: GraphQLRequest) -> Result<GraphQLAnswer, TransportError> {
        let variables = request.values
        return body(rated(variables["recipe"] as? String ?? "", variables["stars"] as? Int ?? 0))
    }

    /// Of two ratings the first was done, and the second failed.
    static func firstOfTwo(errors: String) -> Result<GraphQLAnswer, TransportError> {
        body(#"{"data":{"first":{"__typename":"Recipe","id":"1","rating":5},"second":null},"errors":[\#(errors)]}"#)
    }

    /// A server that rates recipes, and notes what took effect; a repeat of a key takes none.
    ///
    /// - Parameters:
    ///   - trouble: What happens to the mutation of this number, from 0, instead of an answer; `true` after it took
    ///     effect.
    ///   - errors: What it is answered with instead.
    static func rating(
        tellsRepeats: Bool = true, by idempotency: Idempotency = key,
        trouble: @escaping @Sendable (Int) throws -> (error: TransportError, afterEffect: Bool)? = { _ in nil },
        errors: @escaping @Sendable (Int) -> String? = { _ in nil }
    ) -> ScriptedServer {
        ScriptedServer(tellsRepeats ? idempotency : nil, search: { _, _ in try found.get() }) {
            server, number, request in
            let trouble = try trouble(number)
            if let trouble, !trouble.afterEffect { throw trouble.error }
            if let text = errors(number) { return GraphQLAnswer(text) }
            let variables = request.values
            let (recipe, stars) = (variables["recipe"] as? String ?? "", variables["stars"] as? Int ?? 0)
            let key = request.headers.first { $0.name == "Idempotency-Key" }?.value ?? variables["key"] as? String
            server.note("\(recipe) \(stars)", key: key)
            if let trouble { throw trouble.error }
            return GraphQLAnswer(rated(recipe, stars))
        }
    }
}
