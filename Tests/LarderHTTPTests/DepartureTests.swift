import Larder
import Testing

@testable import LarderHTTP

@Suite("Whether a request has left")
struct DepartureTests {
    @Test("What is withdrawn before it leaves never leaves")
    func withdrawn() {
        let request = Departure()
        #expect(request.withdraw() == .beforeSending)
        #expect(!request.leave())
    }

    @Test("What has left cannot be withdrawn")
    func left() {
        let request = Departure()
        #expect(request.leave())
        #expect(request.withdraw() == .sending)
    }
}
