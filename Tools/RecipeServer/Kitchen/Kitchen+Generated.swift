extension Kitchen {
    /// A data set made from a seed: the same seed gives the same data on every machine.
    static func generated(seed: UInt64, recipes recipeCount: Int, authors authorCount: Int) -> Kitchen {
        var random = SplitMix(seed: seed)
        var kitchen = Kitchen()
        kitchen.ingredients = KitchenWords.ingredients.map {
            Ingredient(name: $0.name, isVegan: $0.isVegan, kilocalories: $0.kilocalories)
        }
        for _ in 0..<max(1, authorCount) {
            let name = "\(random.pick(KitchenWords.firstNames)) \(random.pick(KitchenWords.lastNames))"
            let bio = random.chance(70) ? "Cooks in the \(random.pick(KitchenWords.cuisines).lowercased()) way." : nil
            kitchen.authors.append(Author(name: name, bio: bio))
        }
        // 2024-01-01 00:00:00 UTC
        kitchen.latestTime = 1_704_067_200
        for _ in 0..<max(0, recipeCount) { kitchen.addRecipe(&random) }
        return kitchen
    }

    private mutating func addRecipe(_ random: inout SplitMix) {
        let index = recipes.count
        var portions: [Portion] = []
        for _ in 0..<random.within(3...8) {
            let ingredient = random.below(ingredients.count)
            guard !portions.contains(where: { $0.ingredient == ingredient }) else { continue }
            let unit = KitchenWords.ingredients[ingredient].unit
            let amount = unit == "PIECE" || unit == "SPOON" ? random.within(1...6) : random.within(2...20) * 25
            // Halves, so that some amounts are no whole numbers.
            portions.append(Portion(amount: Double(amount) / 2, unit: unit, ingredient: ingredient))
            ingredients[ingredient].usedIn.append(index)
        }
        let main = ingredients[portions[0].ingredient].name
        let author = random.below(authors.count)
        latestTime += random.within(1...40) * 60
        recipes.append(
            Recipe(
                title: "\(random.pick(KitchenWords.manners)) \(main) \(random.pick(KitchenWords.dishes))",
                summary: random.chance(80) ? "For \(random.within(2...4)) days of \(main)." : nil,
                cuisine: random.pick(KitchenWords.cuisines), minutes: random.within(2...36) * 5,
                servings: random.within(1...8), stars: [], createdAt: latestTime, author: author,
                portions: portions, steps: [], comments: []
            )
        )
        authors[author].recipes.append(index)
        for number in 1...random.within(3...7) {
            let name = ingredients[random.pick(portions).ingredient].name
            let text = random.pick(KitchenWords.actions).split(separator: "%", omittingEmptySubsequences: false)
                .joined(separator: name)
            let minutes = random.chance(60) ? random.within(1...30) : nil
            recipes[index].steps.append(steps.count)
            steps.append(Step(number: number, text: text, minutes: minutes, recipe: index))
        }
        for _ in 0..<random.below(8) {
            latestTime += random.within(1...40) * 60
            addComment(
                text: random.pick(KitchenWords.remarks), stars: random.chance(75) ? random.within(1...5) : nil,
                author: random.below(authors.count), recipe: index
            )
        }
    }

    /// Adds a comment of the newest time and gives its index. Author and recipe must be there.
    @discardableResult
    mutating func addComment(text: String, stars: Int?, author: Int, recipe: Int) -> Int {
        let index = comments.count
        comments.append(Comment(text: text, stars: stars, createdAt: latestTime, author: author, recipe: recipe))
        authors[author].comments.append(index)
        recipes[recipe].comments.append(index)
        if let stars { recipes[recipe].stars.append(stars) }
        return index
    }
}
