import Larder
import LarderCommandLine
import LarderFiles
import LarderOperations
import LarderRecords
import Testing

@Suite("Exit statuses of the library's errors")
struct ExitStatusTests {
    @Test(
        "Each kind of failure has the status that the article gives it, also as the cause of another",
        arguments: [
            (
                .failure,
                [
                    "records.full", "records.busy", "operations.full", "operations.busy", "operations.migrationLocked",
                    "larder.serverErrors", "larder.anythingElse",
                ]
            ),
            (
                .usage,
                [
                    "larder.schema", "larder.syntax", "larder.operation", "larder.variables", "larder.data",
                    "larder.environment", "records.responseMalformed", "records.responseMismatch",
                    "records.schemaMismatch", "records.tooLarge", "operations.invalid",
                    "operations.unknownTemporaryID", "operations.damagedBackup",
                ]
            ),
            (
                .miss,
                [
                    "larder.miss", "larder.deleted", "larder.noEnvironment", "operations.notFound",
                    "operations.unknownEnvironment", "operations.unknownPartition",
                ]
            ),
            (
                .refused,
                [
                    "records.notWritable", "records.futureFormat", "records.olderFormat", "operations.notWritable",
                    "operations.foreign", "operations.newerFormat", "operations.pending", "operations.unfinished",
                    "operations.migrationChanged", "operations.unknownSchema", "operations.foreignBackup",
                    "operations.wrongState", "operations.unsentWork", "operations.uploadsLeft",
                    "operations.environmentChanged", "operations.environmentInUse", "operations.occupied",
                    "operations.otherPartition", "operations.protected",
                ]
            ),
            (
                .damaged,
                ["records.damaged", "operations.damaged", "operations.damagedRow", "operations.migrationMissing"]
            ),
        ] as [(LarderCommandLine.ExitStatus, [String])])
    func statuses(status: LarderCommandLine.ExitStatus, codes: [String]) {
        for code in codes {
            let error: any Error =
                switch code.split(separator: ".")[0] {
                case "records": RecordError(.init(rawValue: code), "it")
                case "operations": OperationsError(.init(rawValue: code), "it")
                default: LarderError(.init(rawValue: code), "it")
                }
            #expect(Failure(error).exit == status, "\(code)")
            #expect(Failure(LarderError(.init(rawValue: code), "it", cause: error)).exit == status, "\(code)")
        }
    }

    @Test("A failure of a cache names the file that could not be used, also as the cause of another")
    func file() {
        let cause = FileError(2, doing: "Opening a file", path: "/there/data.mdb")
        let error = RecordError(.init(rawValue: "records.storage"), "It failed", cause: cause)
        #expect(Failure(error).message.contains("/there/data.mdb"))
        let outer = LarderError(.init(rawValue: "records.storage"), "It failed", cause: error)
        #expect(Failure(outer).message.contains("/there/data.mdb"))
    }

    @Test("A failure has the HTTP status also where the server reported errors with it")
    func statusBesideErrors() {
        let cause = TransportError(.status, "It failed", status: 429)
        let failure = Failure(LarderError(.serverErrors, "No", errors: [.init(message: "slow down")], cause: cause))
        #expect(failure.details.map { $0.name } == ["status", "errors"])
        #expect(failure.message == "No: slow down")
    }

    @Test("A miss has all paths of what is missing beside its message, which names the first twenty")
    func allMissing() throws {
        let missing = (0...20).map { ResponsePath([.field("f\($0)")]) }
        let failure = Failure(LarderError(.miss, "No", missing: missing))
        #expect(failure.message.hasSuffix(", f19 and 1 more"))
        let told = try #require(failure.details.first { $0.name == "missing" }).value
        let paths = missing.map { "[\"\($0)\"]" }.joined(separator: ",")
        #expect(String(decoding: told.bytes, as: UTF8.self) == "[\(paths)]")
    }
}
