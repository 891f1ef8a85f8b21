/// What the recipes are made of.
enum KitchenWords {
    static let cuisines = [
        "CHINESE", "ETHIOPIAN", "FRENCH", "INDIAN", "ITALIAN", "JAPANESE", "LEBANESE", "MEXICAN", "NORDIC", "PERUVIAN",
    ]

    /// Name, whether it is vegan, unit, kilocalories per 100 units.
    static let ingredients: [(name: String, isVegan: Bool, unit: String, kilocalories: Int)] = [
        ("onion", true, "PIECE", 4_000), ("garlic clove", true, "PIECE", 450), ("tomato", true, "PIECE", 2_200),
        ("carrot", true, "PIECE", 2_500), ("potato", true, "GRAM", 77), ("aubergine", true, "PIECE", 11_000),
        ("courgette", true, "PIECE", 3_300), ("leek", true, "PIECE", 5_400), ("fennel", true, "PIECE", 7_300),
        ("beetroot", true, "GRAM", 43), ("pumpkin", true, "GRAM", 26), ("spinach", true, "GRAM", 23),
        ("kale", true, "GRAM", 35), ("white cabbage", true, "GRAM", 25), ("red lentils", true, "GRAM", 352),
        ("chickpeas", true, "GRAM", 364), ("black beans", true, "GRAM", 341), ("rice", true, "GRAM", 360),
        ("bulgur", true, "GRAM", 342), ("buckwheat", true, "GRAM", 343), ("wheat flour", true, "GRAM", 364),
        ("rye flour", true, "GRAM", 325), ("teff", true, "GRAM", 367), ("oats", true, "GRAM", 379),
        ("tofu", true, "GRAM", 76), ("walnuts", true, "GRAM", 654), ("almonds", true, "GRAM", 579),
        ("sesame", true, "SPOON", 5_200), ("olive oil", true, "SPOON", 11_900), ("soy sauce", true, "SPOON", 850),
        ("lemon", true, "PIECE", 1_700), ("lime", true, "PIECE", 2_000), ("coconut milk", true, "MILLILITRE", 230),
        ("chilli", true, "PIECE", 200), ("ginger", true, "GRAM", 80), ("turmeric", true, "SPOON", 2_900),
        ("cumin", true, "SPOON", 2_200), ("coriander", true, "SPOON", 500), ("parsley", true, "SPOON", 100),
        ("mint", true, "SPOON", 200), ("basil", true, "SPOON", 100), ("dill", true, "SPOON", 100),
        ("mushrooms", true, "GRAM", 22), ("quinoa", true, "GRAM", 368), ("sweet potato", true, "GRAM", 86),
        ("egg", false, "PIECE", 7_200), ("butter", false, "GRAM", 717), ("cream", false, "MILLILITRE", 340),
        ("yoghurt", false, "GRAM", 61), ("feta", false, "GRAM", 264), ("parmesan", false, "GRAM", 431),
        ("mozzarella", false, "GRAM", 280), ("salmon", false, "GRAM", 208), ("cod", false, "GRAM", 82),
        ("prawns", false, "GRAM", 99), ("chicken thigh", false, "GRAM", 209), ("lamb shoulder", false, "GRAM", 264),
        ("beef shank", false, "GRAM", 128), ("honey", false, "SPOON", 6_400), ("milk", false, "MILLILITRE", 61),
    ]

    static let manners = [
        "Braised", "Charred", "Crisp", "Fragrant", "Golden", "Grandmother's", "Pickled", "Quick", "Roasted", "Slow",
        "Smoky", "Spiced", "Stuffed", "Sunday", "Warm", "Winter",
    ]

    static let dishes = [
        "bake", "broth", "casserole", "curry", "dumplings", "flatbread", "fritters", "gratin", "noodles", "pancakes",
        "pie", "salad", "skewers", "soup", "stew", "tart",
    ]

    static let firstNames = [
        "Abebe", "Akiko", "Amara", "Astrid", "Bao", "Camille", "Chiara", "Dalia", "Elif", "Farid", "Greta", "Hana",
        "Inés", "Jonas", "Kofi", "Lucía", "Maja", "Nadim", "Olu", "Paolo", "Ravi", "Søren", "Tomás", "Yuki",
    ]

    static let lastNames = [
        "Aalto", "Bianchi", "Castillo", "Desta", "Eriksen", "Fontaine", "Gupta", "Haddad", "Ito", "Jovanović",
        "Khoury", "Lindqvist", "Morales", "Nakamura", "Okafor", "Petit", "Quispe", "Rossi", "Sharma", "Wang",
    ]

    static let actions = [
        "Chop the %, not too finely.", "Soften the % over a low flame.", "Fold in the % and stop stirring.",
        "Rinse the % until the water stays clear.", "Toast the % in a dry pan.", "Stir the % through off the heat.",
        "Leave the % to rest under a cloth.", "Press the % through a sieve.", "Brown the % on all sides.",
        "Season the % well and taste.", "Lay the % on top and bake.", "Reduce with the % until it coats a spoon.",
    ]

    static let remarks = [
        "Made this twice in a week.", "Needs more salt than it says.", "My children asked for seconds!",
        "Worked with half the fat, too.", "The second day it was even better.", "A little heavy for summer.",
        "Simple and exactly right.", "I left out the chilli and did not miss it.", "Takes longer than promised.",
        "Now it is our Friday dish.", "Freezes well.", "The smell alone is worth it – thank you. 🍲",
    ]
}
