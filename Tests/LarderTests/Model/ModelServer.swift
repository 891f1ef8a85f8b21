import Larder

/// The server as plain values: what it has, and what was done to it.
struct ModelServer {
    struct Effect {
        var tag: Int
        var lane: String
        var recipe: String
    }

    let tellsRepeats: Bool
    private(set) var recipes: [String: [String: ModelCache.Field]] = [:]
    private(set) var list: [String] = []
    /// In the order in which they came about.
    private(set) var effects: [Effect] = []
    /// By idempotency key, what it made or changed.
    private var known: [String: String] = [:]
    private var version = 0

    init(tellsRepeats: Bool) {
        self.tellsRepeats = tellsRepeats
        for number in 0..<4 { make("r\(number)", "recipe \(number)", number) }
    }

    func effects(of tag: Int) -> [Effect] { effects.filter { $0.tag == tag } }

    /// Whether what comes with this key would be a repeat.
    func knows(_ key: String?) -> Bool { tellsRepeats && key.map { known[$0] != nil } ?? false }

    /// Carries out a change, unless it is a repeat.
    ///
    /// - Returns: What it is about as it is now, with the fields that are asked for; nil where it cannot be done.
    mutating func carryOut(_ change: ModelChange, key: String?, lane: String, starsAdded: Int = 0) -> ModelEffect? {
        if tellsRepeats, let key, let recipe = known[key] { return answer(change.kind, recipe) }
        var recipe = change.recipe
        switch change.kind {
        case .add:
            recipe = "r\(recipes.count)"
            make(recipe, change.title, starsAdded)
        case .rate:
            guard recipes[recipe] != nil else { return nil }
            set(recipe, "stars", .int(Int64(change.stars + starsAdded)))
        case .unlist:
            guard recipes[recipe] != nil else { return nil }
            list.removeAll { $0 == recipe }
        }
        effects.append(Effect(tag: change.tag, lane: lane, recipe: recipe))
        if let key { known[key] = recipe }
        return answer(change.kind, recipe)
    }

    /// What a mutation of this kind would be answered with now.
    func answer(_ kind: ModelChange.Kind, _ recipe: String) -> ModelEffect {
        let names =
            switch kind {
            case .add: ["title", "stars"]
            case .rate: ["stars"]
            case .unlist: [String]()
            }
        return ModelEffect(recipe: recipe, fields: (recipes[recipe] ?? [:]).filter { names.contains($0.key) })
    }

    /// Somebody else changes something.
    mutating func set(_ recipe: String, _ field: String, _ value: Value) {
        version += 1
        recipes[recipe]?[field] = .init(value, version)
    }

    private mutating func make(_ recipe: String, _ title: String, _ stars: Int) {
        recipes[recipe] = [:]
        set(recipe, "title", .string(title))
        set(recipe, "stars", .int(Int64(stars)))
        list.insert(recipe, at: 0)
    }

    /// The answer to a question for the whole list.
    var listAnswer: Value {
        [
            "data": .object([
                "recipes": .list(
                    list.map { recipe in
                        var members: [String: Value] = ["__typename": "Recipe", "id": .string(recipe)]
                        for (name, field) in recipes[recipe] ?? [:] { members[name] = field.value }
                        return .object(members)
                    })
            ])
        ]
    }
}
