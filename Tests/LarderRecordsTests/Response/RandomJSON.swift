/// Random JSON text of every kind, the same for the same seed.
struct RandomJSON {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next(below limit: Int) -> Int {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return Int((mixed ^ mixed >> 31) % UInt64(limit))
    }

    private static let scalars = [
        "null", "true", "false", "0", "-1", "1", "1.0", "2.5", "-0.0", "9223372036854775807", "9223372036854775808",
        "-9223372036854775808", "1e400", "0.1", "0.12345678901234567890123", "1e2", "\"\"", "\"text\"",
        "\"\\u00e9\\n\\\"\\\\\"", "\"e\\u0301\"", "\"\\ud83d\\ude00\"", "\"😀 and more than fifteen bytes\"", "[]", "{}",
    ]
    private static let names = [
        "a", "b", "id", "name", "a name of many more bytes", "", "\\u00e9", "e\\u0301", "q\\\"", "x", "y", "z",
    ]

    /// Fields stand in random order.
    mutating func text(depth: Int = 4) -> String {
        guard depth > 0, next(below: 4) > 0 else { return Self.scalars[next(below: Self.scalars.count)] }
        let count = next(below: 6)
        if next(below: 2) == 0 {
            return "[" + (0..<count).map { _ in text(depth: depth - 1) }.joined(separator: ", ") + "]"
        }
        var names = Self.names
        let members = (0..<count).map { _ in
            "\"\(names.remove(at: next(below: names.count)))\": " + text(depth: depth - 1)
        }
        return "{" + members.joined(separator: " , ") + "}"
    }
}
