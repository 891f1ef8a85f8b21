import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Ids that ascend")
struct AscendingIDTests {
    @Test("An id says its time, its version and its variant, and no two are the same")
    func parts() {
        var seen: Set<UUID> = []
        for index in 0..<1_000 {
            let id = UUID.ascending(at: after(Double(index)))
            let text = id.uuidString
            let hexadecimal = text.replacing("-", with: "").prefix(12)
            #expect(Int64(hexadecimal, radix: 16) == after(Double(index)).milliseconds)
            #expect(Array(text)[14] == "7" && "89AB".contains(Array(text)[19]))
            #expect(seen.insert(id).inserted)
            #expect(seen.insert(UUID.ascending(at: after(Double(index)))).inserted)
        }
    }

    @Test("Many of one time ascend, and no two of two calls are the same")
    func many() {
        let ids = UUID.ascending(10_000, at: noon)
        #expect(ids.map(\.uuidString) == ids.map(\.uuidString).sorted())
        #expect(Set(ids + UUID.ascending(10_000, at: noon)).count == 20_000)
        #expect(ids.allSatisfy { Array($0.uuidString)[14] == "7" && "89AB".contains(Array($0.uuidString)[19]) })
        #expect(UUID.ascending(0, at: noon) == [])
    }

    @Test(
        "A time before 1970, or past all times, makes an id all the same",
        arguments: [
            -1, -1e300, 1e300, .infinity, -.infinity, .nan,
        ])
    func oddTimes(seconds: Double) {
        let time = Date(timeIntervalSince1970: seconds)
        #expect(UUID.ascending(at: time) != UUID.ascending(at: time))
    }
}
