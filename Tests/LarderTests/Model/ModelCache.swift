import Larder

/// What a cache holds, or what it shows, as plain dictionaries.
struct ModelCache: Equatable {
    struct Field: Equatable {
        var value: Value
        /// By which change of the server's it came to this value.
        var version: Int

        init(_ value: Value, _ version: Int) {
            self.value = value
            self.version = version
        }
    }

    /// By id, of each recipe what is known of it.
    var recipes: [String: [String: Field]] = [:]
    /// The ids in the list of all recipes; nil where nobody has heard of it.
    var list: [String]?

    /// Does what an answer does, or an answer that is expected.
    mutating func take(_ effect: ModelEffect?, _ edits: [ModelListChange]) {
        if let effect { recipes[effect.recipe, default: [:]].merge(effect.fields) { $1 } }
        for edit in edits { change(edit) }
    }

    private mutating func change(_ edit: ModelListChange) {
        guard var list else { return }
        if edit.isRemoval {
            list.removeAll { $0 == edit.recipe }
        } else {
            guard recipes[edit.recipe] != nil, !list.contains(edit.recipe) else { return }
            list.insert(edit.recipe, at: index(of: edit, in: list))
        }
        self.list = list
    }

    private func index(of edit: ModelListChange, in list: [String]) -> Int {
        let isBehind: (Int64, Int64) -> Bool
        switch edit.place {
        case .start: return 0
        case .end: return list.count
        case .ascending: isBehind = { $0 > $1 }
        case .descending: isBehind = { $0 < $1 }
        }
        guard let own = stars(of: edit.recipe) else { return list.count }
        return list.firstIndex { stars(of: $0).map { isBehind($0, own) } ?? false } ?? list.count
    }

    private func stars(of recipe: String) -> Int64? {
        if case .int(let stars)? = recipes[recipe]?["stars"]?.value { stars } else { nil }
    }
}

/// What an answer says of the one recipe that it is about.
struct ModelEffect: Equatable {
    var recipe: String
    var fields: [String: ModelCache.Field] = [:]
}

/// What a mutation does to the list of all recipes.
struct ModelListChange: Equatable {
    var recipe: String
    /// By their stars, where it is in an order.
    var place = ListChange.Place.start
    var isRemoval = false

    var change: ListChange {
        isRemoval
            ? .remove("Recipe:\(recipe)", from: "recipes")
            : .insert("Recipe:\(recipe)", into: "recipes", at: place)
    }
}
