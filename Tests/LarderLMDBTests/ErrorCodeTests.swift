import Foundation
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

    /// LMDB's numbers are below zero, in the order of `lmdb.h`; the others are the system's.
    @Test(
        "What LMDB and the system say has one meaning each",
        arguments: [
            (-30_799, .appendOutOfOrder), (-30_798, .missing), (-30_797, .damaged), (-30_796, .damaged),
            (-30_795, .environmentUnusable), (-30_794, .futureVersion), (-30_793, .foreign), (-30_792, .mapFull),
            (-30_791, .invalidArgument), (-30_790, .readersFull), (-30_785, .mapResized), (-30_784, .tableMismatch),
            (-30_783, .environmentUnusable), (-30_782, .transactionUnusable), (-30_781, .keyTooLong),
            (-30_780, .invalidArgument), (ENOSPC, .diskFull), (EDQUOT, .diskFull), (ENOMEM, .outOfMemory),
            (EMFILE, .tooManyFiles), (ENFILE, .tooManyFiles), (EACCES, .permissionDenied), (EPERM, .permissionDenied),
            (EROFS, .readOnly), (ENOENT, .missing), (EEXIST, .invalidArgument), (EINVAL, .invalidArgument),
            (EXDEV, .io), (ENOTSUP, .io), (EIO, .io),
        ] as [(Int32, LMDBError.Code)])
    func statuses(status: Int32, code: LMDBError.Code) {
        let error = LMDBError.make(status, doing: "doing something", path: "f")
        #expect((error.code, error.status) == (code, status))
        #expect(error.path == "f" && error.message.hasPrefix("doing something: "))
    }

    @Test("A description has what is known of the file, the page and the status")
    func description() {
        #expect("\(LMDBError(.closed, "It is closed."))" == "lmdb.closed: It is closed.")
        #expect("\(LMDBError(.io, "It failed.", path: "f", status: 5))" == "lmdb.io: It failed. [f] (status 5)")
        #expect("\(LMDBError(.damaged, "It is bad.", path: "f", page: 7))" == "lmdb.damaged: It is bad. [f, page 7]")
    }
}
