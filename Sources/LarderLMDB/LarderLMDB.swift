// LarderLMDB
