import Testing

@testable import LarderRecords

@Suite("Names of an object's fields")
struct ObjectShapeTests {
    @Test("Every name is found at its place, and no other name is", arguments: [0, 1, 8, 9, 16, 17, 500])
    func places(count: Int) {
        // Many of one length, and many of the same first and last eight bytes.
        let names = (0..<count).map { $0 % 2 == 0 ? "n\($0)" : "commentsOf\($0)InThisList" }
        let shape = ObjectShape(names)
        for (place, name) in names.enumerated() {
            for guess in [0, place, place + 1, count] { #expect(shape.position(of: name, guess: guess) == place) }
        }
        for other in ["", "n", "n\(count)", "commentsOf\(count * 2)InThisList", "commentsOf1InThatList", "\u{e9}"]
        where !names.contains(other) {
            #expect(shape.position(of: other) == nil)
        }
    }

    @Test("Of two fields of one name the first is found", arguments: [2, 12])
    func twice(count: Int) {
        #expect(ObjectShape(Array(repeating: "a", count: count)).position(of: "a") == 0)
    }
}
