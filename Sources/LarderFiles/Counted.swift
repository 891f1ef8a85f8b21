extension BinaryInteger {
    /// How many there are, as English says it: "0 mutations", "1 mutation", "2 mutations".
    ///
    /// - Parameters:
    ///   - one: The word for one of them.
    ///   - many: The word for several, where it is not the same with an s.
    package func counted(_ one: String, _ many: String? = nil) -> String {
        "\(self) \(self == 1 ? one : many ?? one + "s")"
    }
}
