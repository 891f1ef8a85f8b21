/// What a text may ask of the parser. More is a ``SyntaxError``.
package struct ParserLimits: Sendable, Hashable {
    /// How deep selection sets, literals and types may nest, together.
    ///
    /// The parser, and what walks its results, recurses as deep, so this is kept between 1 and ``deepest``.
    package var nesting: Int { didSet { nesting = Self.clamped(nesting) } }
    /// How many tokens a text may have, comments not counted.
    package var tokens: Int

    package init(nesting: Int = deepest, tokens: Int = 1_000_000) {
        self.nesting = Self.clamped(nesting)
        self.tokens = tokens
    }

    /// What fits the smallest stack of any thread (512 KiB), in debug builds too, where a level takes 3 KiB at most: in
    /// the canonical form of arguments. As deep as a plan may be.
    package static let deepest = Plan.greatestDepth

    package static let `default` = ParserLimits()
    /// For schema definitions, which may be several times longer than any operation.
    package static let schema = ParserLimits(tokens: 20_000_000)

    private static func clamped(_ nesting: Int) -> Int { min(max(nesting, 1), deepest) }
}
