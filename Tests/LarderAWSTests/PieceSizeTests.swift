import LarderAWS
import Testing

@Suite("How much of a file is sent at a time")
struct PieceSizeTests {
    @Test("It grows while connections are fast, and is small where they are slow")
    func grows() {
        let size = PieceSize()
        let first = size.current
        for _ in 0..<20 { size.learn(size.current, took: .milliseconds(10)) }
        let largest = size.current
        #expect(largest > first)
        size.learn(largest, took: .milliseconds(400))
        #expect(size.current == largest)
        for _ in 0..<20 { size.learn(size.current, took: .seconds(5)) }
        #expect(size.current < first)
        #expect(size.current > 0)
    }

    @Test("The end of a body says nothing of a fast connection, and a failure all of a slow one")
    func ends() {
        let size = PieceSize()
        let first = size.current
        size.learn(first - 1, took: .zero)
        #expect(size.current == first)
        size.learn(first, took: .zero)
        size.forget()
        #expect(size.current == first)
    }
}
