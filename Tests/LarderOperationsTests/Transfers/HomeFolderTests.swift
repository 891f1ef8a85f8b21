import Foundation
import Testing

@testable import LarderOperations

@Suite("The folder to which the paths of transfers are relative")
struct HomeFolderTests {
    private let old = UUID().uuidString
    private let new = UUID().uuidString

    private func stored(_ folder: String, home: String, isThere: Bool = false) -> String {
        HomeFolder("/apps/\(home)").storedFormerly("/apps/\(folder)/file") { _ in isThere }
    }

    @Test("A whole path follows a moved container only where both have a UUID for a name, and the old one is gone")
    func formerContainer() {
        #expect(stored(old, home: new) == "file")
        #expect(stored(new, home: new, isThere: true) == "file")
        #expect(stored(old, home: new, isThere: true) == "/apps/\(old)/file")
        #expect(stored("other", home: new) == "/apps/other/file")
        #expect(stored(old, home: "program") == "/apps/\(old)/file")
    }
}
