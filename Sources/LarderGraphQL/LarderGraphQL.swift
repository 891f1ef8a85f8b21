// LarderGraphQL
