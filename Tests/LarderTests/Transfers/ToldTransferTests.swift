import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The memory of a reader of events")
struct ToldTransferTests {
    private static func status(_ state: TransferStatus.State, _ id: TransferID = TransferID(UUID())) -> TransferStatus {
        TransferStatus(
            id: id, kind: .upload, state: state, location: TransferFixture.location, file: URL(filePath: "/file"),
            priority: 0,
            size: 1, arrived: 0, attempts: 1, failure: nil, etag: nil, version: nil, created: .now, expires: nil,
            ended: nil, notBefore: nil, handedOver: nil)
    }

    @Test("It remembers transfers that may change, and the last few thousand that are over")
    func bounded() {
        let listener = TransferBook.Listener()
        let open = (0..<10).map { _ in Self.status(.running) }
        listener.know(open)
        for _ in 0..<20_000 {
            let id = TransferID(UUID())
            #expect(listener.isNews(Self.status(.running, id)))
            #expect(listener.isNews(Self.status(.done, id)))
        }
        #expect(listener.knownCount == TransferBook.Listener.mostOver + open.count)
        #expect(open.allSatisfy { !listener.isNews($0) })
    }

    @Test("A transfer that changes after its end takes the place of no other among those that are remembered")
    func changedAfterEnd() {
        let listener = TransferBook.Listener()
        let (first, second) = (Self.status(.done), TransferID(UUID()))
        #expect(listener.isNews(first))
        for _ in 0...TransferBook.Listener.mostOver { #expect(listener.isNews(Self.status(.done, second))) }
        #expect(!listener.isNews(first))
        #expect(listener.knownCount == 2)
    }

    @Test("Of a transfer that changes often before it is looked at, the newest status alone is told")
    func newest() {
        let listener = TransferBook.Listener()
        let (first, second) = (UUID(), UUID())
        listener.add([first, second])
        listener.add([second, first])
        #expect([listener.take(), listener.take(), listener.take()] == [first, second, nil])
        listener.add([first])
        #expect(listener.take() == first)
    }

    @Test("The same is told once, and what has changed once more")
    func once() {
        let listener = TransferBook.Listener()
        let (first, second) = (Self.status(.done), Self.status(.failed))
        #expect(listener.isNews(first) && !listener.isNews(first))
        #expect(listener.isNews(second) && !listener.isNews(second))
        var changed = second
        changed = Self.status(.pending, second.id)
        #expect(listener.isNews(changed))
        listener.compare([first, changed, Self.status(.cancelled, first.id)])
        #expect(listener.take() == first.id.uuid)
        #expect(listener.take() == nil)
    }
}
