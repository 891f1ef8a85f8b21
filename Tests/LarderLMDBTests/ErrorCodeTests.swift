import Testing

@testable import LarderLMDB

@Suite("Codes of errors of LMDB")
struct ErrorCodeTests {
    @Test("Each code keeps its name")
    func names() {
        let names: [(LMDBError.Code, String)] = [
            (.mapFull, "lmdb.mapFull"), (.diskFull, "lmdb.diskFull"), (.readersFull, "lmdb.readersFull"),
            (.transactionFull, "lmdb.transactionFull"), (.outOfMemory, "lmdb.outOfMemory"),
            (.tooManyFiles, "lmdb.tooManyFiles"),
            (.damaged, "lmdb.damaged"), (.truncated, "lmdb.truncated"), (.foreign, "lmdb.foreign"),
            (.futureVersion, "lmdb.futureVersion"), (.missing, "lmdb.missing"), (.tableMissing, "lmdb.tableMissing"),
            (.tableMismatch, "lmdb.tableMismatch"), (.readOnly, "lmdb.readOnly"),
            (.permissionDenied, "lmdb.permissionDenied"), (.alreadyOpen, "lmdb.alreadyOpen"),
            (.closed, "lmdb.closed"), (.lockTimedOut, "lmdb.lockTimedOut"), (.mapResized, "lmdb.mapResized"),
            (.environmentUnusable, "lmdb.environmentUnusable"), (.transactionUnusable, "lmdb.transactionUnusable"),
            (.keyEmpty, "lmdb.keyEmpty"), (.keyTooLong, "lmdb.keyTooLong"),
            (.keyKindMismatch, "lmdb.keyKindMismatch"), (.valueTooLong, "lmdb.valueTooLong"),
            (.appendOutOfOrder, "lmdb.appendOutOfOrder"), (.invalidArgument, "lmdb.invalidArgument"),
            (.io, "lmdb.io"),
        ]
        for (code, name) in names { #expect(code.rawValue == name && "\(code)" == name) }
        #expect(Set(names.map(\.1)).count == names.count)
    }

    /// LMDB's full transaction, cursor and page.
    @Test("A transaction that holds all it can is to be split", arguments: [-30_788, -30_787, -30_786] as [Int32])
    func transactionFull(status: Int32) {
        let error = LMDBError.make(status, doing: "storing a value")
        #expect((error.code, error.status) == (.transactionFull, status))
        #expect(error.message.hasSuffix("Split the work into several transactions."))
    }

    @Test("A description has what is known of the file, the page and the status")
    func description() {
        #expect("\(LMDBError(.closed, "It is closed."))" == "lmdb.closed: It is closed.")
        #expect("\(LMDBError(.io, "It failed.", path: "f", status: 5))" == "lmdb.io: It failed. [f] (status 5)")
        #expect("\(LMDBError(.damaged, "It is bad.", path: "f", page: 7))" == "lmdb.damaged: It is bad. [f, page 7]")
    }
}
