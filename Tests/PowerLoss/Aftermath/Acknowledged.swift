package import Larder

/// What had been promised when the power went, and what the server had done, by the marks until then.
package struct Acknowledged: Sendable {
    package struct Promise: Sendable {
        package let tag: Int
        /// As it was read last.
        package var state: MutationStatus.State?
        /// Somebody was about to send it again, or to give it up.
        package var isBeingReplayed = false
        package var isBeingDiscarded = false
    }

    package private(set) var mutations: [MutationID: Promise] = [:]
    package private(set) var effects: [(key: String, effect: RecipeLedger.Effect)] = []
    package init() {}

    package mutating func take(_ mark: String) {
        let words = mark.split(separator: " ").map(String.init)
        guard words.count > 1 else { return }
        switch words[0] {
        case "accepted":
            guard let id = MutationID(words[1]), let tag = words.last.flatMap({ Int($0) }) else { return }
            mutations[id] = Promise(tag: tag)
        case "effect":
            guard let effect = RecipeLedger.Effect(words: Array(words.dropFirst(2))) else { return }
            effects.append((words[1], effect))
        case "ended":
            change(words[1]) { promise in
                promise.state = words.last.flatMap(MutationStatus.State.init)
                promise.isBeingReplayed = false
            }
        case "replaying": change(words[1]) { $0.isBeingReplayed = true }
        case "discarding": change(words[1]) { $0.isBeingDiscarded = true }
        default: break
        }
    }

    private mutating func change(_ id: String, _ body: (inout Promise) -> Void) {
        guard let id = MutationID(id) else { return }
        mutations[id].map { promise in
            var promise = promise
            body(&promise)
            mutations[id] = promise
        }
    }
}
