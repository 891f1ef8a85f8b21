import LarderRecords

extension CacheStatistics {
    /// How many entries a table holds; none where there is no such table.
    func entries(of table: String) -> Int { tables.first { $0.name == table }?.entries ?? 0 }
}
