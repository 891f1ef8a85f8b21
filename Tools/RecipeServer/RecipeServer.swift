// RecipeServer
