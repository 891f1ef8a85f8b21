import LarderGraphQL
import LarderTestSupport

enum RealData {
    static func text(_ name: String) throws -> String {
        String(decoding: try SharedData.bytes(name), as: UTF8.self)
    }

    static func schema(_ name: String) throws -> SchemaIndex {
        try SchemaIndex(parsing: text(name), sourceName: name)
    }

    /// All Star Wars operations; they use each other's fragments.
    static func starWarsOperations() throws -> String {
        let names = [
            "CharacterAndSubTypesFragments", "CreateReviewForEpisode", "HeroAndFriendsNames",
            "HeroAndFriendsNamesWithFragment", "HeroAppearsIn", "HeroConditional", "HeroDetails",
            "HeroFriendsOfFriends", "HeroName", "HeroNameAndAppearsIn", "HeroParentTypeDependentField",
            "HeroTypeDependentAliasedField", "Human", "SameHeroTwice", "Search", "Starship", "SubscribeReview",
            "TwoHeroes",
        ]
        return try names.map { try text("starwars/\($0).graphql") }.joined(separator: "\n")
    }
}
