import Foundation
import LarderFiles
import LarderOperations
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The error codes")
struct ErrorCodesTests {
    @Test("The article has every code that is declared, and no other")
    func article() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        var declared: [String] = []
        for file in try swiftFiles(in: sources) {
            declared += codes(in: try String(contentsOf: file, encoding: .utf8), declaredAs: #"(rawValue: ""#)
        }
        let article = try String(
            contentsOf: sources.appending(path: "Larder/Larder.docc/Errors.md"), encoding: .utf8)
        let documented = codes(in: article, declaredAs: "\n| `")
        #expect(declared.count >= 32)
        #expect(Set(declared).count == declared.count)
        #expect(documented.sorted() == declared.sorted())
    }

    @Test("Each code of a layer is a constant of LarderError, with the layer's name before its own")
    func constants() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        let list = try String(contentsOf: packageRoot.appending(path: "Tests/PublicAPI/Larder.txt"), encoding: .utf8)
        let constants = Set(
            list.split(separator: "\n").compactMap { line in
                line.hasPrefix("LarderError.Code.") ? line.dropFirst(17).prefix { $0 != ":" } : nil
            })
        var missing: [String] = []
        for file in try swiftFiles(in: sources) {
            let text = try String(contentsOf: file, encoding: .utf8)
            for code in codes(in: text, declaredAs: #"(rawValue: ""#) {
                let parts = code.split(separator: ".")
                // The layers' own; what begins otherwise is declared as a constant of LarderError, or CognitoError.
                guard parts.count == 2, !["larder", "transfer", "cognito"].contains(parts[0]) else { continue }
                let name = parts[0] + parts[1].prefix(1).uppercased() + parts[1].dropFirst()
                if !constants.contains(Substring(name)) { missing.append(code) }
            }
        }
        #expect(missing == [])
    }

    @Test("Every error that a program meets has the text of its code for its user")
    func localized() {
        let errors: [any LocalizedError] = [
            LarderError(.operationsUnsentWork, "x"), TransportError(.unreachable, "x"), ObjectError(.accessDenied, "x"),
            KeyError(.locked, "x"), IdentityError(.throttled, "x"),
        ]
        for error in errors {
            #expect(error.errorDescription?.isEmpty == false && error.errorDescription != "x", "\(error)")
            #expect(error.failureReason == "x")
        }
        let codes: [LarderError.Code] = [
            .operationsUnsentWork, .transportUnreachable, .objectAccessDenied, .keysLocked, .identityThrottled,
        ]
        for (error, code) in zip(errors, codes) {
            #expect(error.errorDescription == LarderError(code, "x").errorDescription, "\(error)")
        }
        #expect("\(IdentityError(.throttled, "x", cause: KeyError(.locked, "so")))".contains(": so"))
    }

    @Test("A transport's error tells its code and its cause, and a server's the field and the kind")
    func descriptions() {
        let cause = KeyError(.locked, "so")
        #expect("\(TransportError(.timedOut, "late"))" == "late [transport.timedOut]")
        #expect("\(TransportError(.timedOut, "late", cause: cause))" == "late [transport.timedOut]: \(cause)")
        let path = ResponsePath([.field("recipes"), .index(3), .field("author")])
        #expect("\(GraphQLError(message: "no"))" == "no")
        #expect("\(GraphQLError(message: "no", path: path, errorType: "Lookup"))" == "no at recipes[3].author [Lookup]")
    }

    @Test("The description of an identity provider's error has the message, the code, and the cause if there is one")
    func identityDescription() {
        let cause = KeyError(.locked, "so")
        #expect("\(IdentityError(.throttled, "x"))" == "x [identity.throttled]")
        #expect("\(IdentityError(.throttled, "x", cause: cause))" == "x [identity.throttled]: \(cause)")
    }

    @Test("The errors of a parked and of a suspended partition have the error of the layer below as their cause")
    func causeOfCache() {
        let suspended = LarderError(RecordError(.suspended, "x"))
        #expect(suspended.code == .suspended && (suspended.cause as? RecordError)?.code == .suspended)
        let closed = LarderError.parking(RecordError(.closed, "x"))
        #expect(closed.code == .parked && (closed.cause as? RecordError)?.code == .closed)
        let ended = LarderError(OperationsError(.closed, "x"))
        #expect(ended.code == .parked && (ended.cause as? OperationsError)?.code == .closed)
    }

    @Test("A key error's description has its message, its code and its cause")
    func keyError() {
        #expect("\(KeyError(.locked, "x"))" == "x [keys.locked]")
        #expect("\(KeyError(.locked, "x", cause: KeyError(.missing, "y")))" == "x [keys.locked]: y [keys.missing]")
    }

    @Test("An error's description has the first five places of what is missing, and counts the others")
    func missingPlaces() {
        func description(_ count: Int) -> String {
            "\(LarderError(.miss, "x", missing: (0..<count).map { ResponsePath([.field("f\($0)")]) }))"
        }
        #expect(description(0) == "x [larder.miss]")
        #expect(description(5) == "x: f0, f1, f2, f3, f4 [larder.miss]")
        #expect(description(6) == "x: f0, f1, f2, f3, f4 and 1 more [larder.miss]")
    }

    @Test("An error's description has the first five of the server's errors")
    func firstServerErrors() {
        let error = LarderError(.serverErrors, "x", errors: (1...6).map { .init(message: "no \($0)") })
        let text = "\(error)"
        #expect(text.hasPrefix("x; no 1") && text.hasSuffix("[larder.serverErrors]"), "\(text)")
        for number in 1...6 { #expect(text.contains("; no \(number)") == (number < 6), "\(text)") }
    }

    @Test("Of the codes that are stored, those that begin with a layer's name and a dot are the library's")
    func storedCodes() {
        for name in ["keys", "identity", "", "keysx.locked", "BAD.keys"] {
            #expect(LarderError.Code(ofLayer: name) == nil, "\(name)")
        }
        let ofLayers: [LarderError.Code] = [
            .miss, .recordsFull, .operationsBusy, .transportStatus, .unfinishedTransfer, .objectChanged,
            .identityThrottled, .keysLocked, .init(rawValue: "cognito.throttled"),
        ]
        for code in ofLayers { #expect(LarderError.Code(ofLayer: code.rawValue) == code, "\(code.rawValue)") }
    }

    @Test("A full disk, missing rights and protected files have their codes, whichever layer has met them")
    func layers() {
        func file(_ status: Int32, isProtected: Bool = false) -> FileError {
            FileError(status, doing: "writing", path: "x", isProtected: isProtected)
        }
        let failures: [(error: any Error, code: LarderError.Code)] = [
            (file(ENOSPC), .operationsFull), (CocoaError(.fileWriteOutOfSpace), .operationsFull),
            (file(EACCES), .operationsNotWritable), (file(EROFS), .operationsNotWritable),
            (CocoaError(.fileWriteNoPermission), .operationsNotWritable),
            (CocoaError(.fileReadNoPermission), .operationsNotWritable),
            (file(EPERM, isProtected: true), .protected), (file(EIO), .backup), (CocoaError(.fileNoSuchFile), .backup),
        ]
        for failure in failures {
            #expect(BackupFailure.typed(failure.error).code == failure.code, "\(failure.error)")
        }
        #expect(LarderError(translating: file(EACCES, isProtected: true)).code == .protected)
        #expect(LarderError(translating: file(EACCES)).code == .notRunnable)
    }

    @Test(
        "Errors may be of a page's token unless their status says that the user or the server's state is why",
        arguments: [
            (nil, true), (400, true), (404, true), (410, true), (422, true), (401, false), (403, false), (429, false),
            (503, false),
        ] as [(Int?, Bool)])
    func ofToken(status: Int?, mayBe: Bool) {
        let error = LarderError(
            .serverErrors, "no", errors: [GraphQLError(message: "no")],
            cause: status.map { TransportError(.status, "\($0)", status: $0) })
        #expect(error.mayBeOfToken == mayBe)
    }

    @Test("The error of a failed backup has the file error as its cause")
    func causeOfBackup() {
        let reason = FileError(EIO, doing: "writing", path: "x")
        let error = BackupFailure.typed(reason)
        #expect(error.code == .backup && (error.cause as? FileError) == reason)
    }

    @Test("The error of a backup that has no right to its files leads to the file error")
    func causeOfForbiddenBackup() {
        let reason = FileError(EACCES, doing: "writing", path: "x")
        let error = BackupFailure.typed(reason)
        let cause = error.cause as? OperationsError
        #expect(error.code == .operationsNotWritable && (cause?.cause as? FileError) == reason)
    }

    @Test(
        "The error of a place where no download can be put has the file error as its cause",
        arguments: [(EIO, LarderError.Code.destinationUnusable), (ENOSPC, .diskFull)])
    func causeOfDestination(status: Int32, code: LarderError.Code) {
        let files = FileSystem(injecting: { _ in .failure(status) })
        let place = DestinationFile(file: URL(filePath: "/nowhere/x"), replaces: false, files)
        let error = #expect(throws: LarderError.self) { try place.check() }
        #expect(error?.code == code && error?.cause is FileError)
    }

    @Test("The error of an upload whose file is missing has the file error as its cause")
    func causeOfSource() {
        let error = #expect(throws: LarderError.self) { _ = try FileIdentity(ofSource: "/nowhere/x") }
        #expect(error?.code == .sourceMissing && error?.cause is FileError)
    }

    @Test("The error of a key file that cannot be read has the file error as its cause")
    func causeOfKeyFile() {
        let files = FileSystem(injecting: { _ in .failure(EIO) })
        let file = URL(filePath: "/nowhere/x")
        let error = #expect(throws: KeyError.self) { _ = try OpenKeyFile(file, for: .reading, files) }
        #expect(error?.code == .unreadable && error?.cause is FileError)
    }

    @Test(
        "The error of a database file that cannot be looked at has the file error as its cause",
        arguments: [(EACCES, OperationsError.Code.notWritable), (EIO, .storage)])
    func causeOfDatabase(status: Int32, code: OperationsError.Code) {
        let files = FileSystem(injecting: { _ in .failure(status) })
        let error = #expect(throws: OperationsError.self) {
            _ = try OperationsDatabase.look(at: "/nowhere/x", files)
        }
        #expect(error?.code == code && error?.cause is FileError)
    }

    @Test("The error of a migration lock that cannot be taken has the file error as its cause")
    func causeOfMigrationLock() {
        let files = FileSystem(injecting: { _ in .failure(EIO) })
        let error = #expect(throws: OperationsError.self) {
            _ = try MigrationLock.take(in: URL(filePath: "/nowhere"), for: "a test", within: .zero, files)
        }
        #expect(error?.code == .storage && error?.cause is FileError)
    }

    @Test("The error of the queue or of the cache has the layer's own error as its cause")
    func causeOfLayers() {
        let ofQueue = LarderError(translating: OperationsError(.occupied, "x"))
        #expect(ofQueue.code == .operationsOccupied && (ofQueue.cause as? OperationsError)?.code == .occupied)
        let ofCache = LarderError(translating: RecordError(.damaged, "x"))
        #expect(ofCache.code == .recordsDamaged && (ofCache.cause as? RecordError)?.code == .damaged)
    }

    @Test("The error of a backup for which the disk has no room leads to the file error")
    func causeOfFullDisk() {
        let reason = FileError(ENOSPC, doing: "writing", path: "x")
        let cause = BackupFailure.typed(reason).cause as? OperationsError
        #expect(cause?.code == .full && (cause?.cause as? FileError) == reason)
    }

    /// The public codes that follow a text: those of this package's layers that a program sees.
    private func codes(in text: String, declaredAs start: String) -> [String] {
        text.components(separatedBy: start).dropFirst().compactMap { rest in
            let code = String(rest.prefix { $0.isASCII && $0.isLetter || $0 == "." })
            let layers = [
                "larder.", "cognito.", "identity.", "keys.", "object.", "operations.", "records.", "transfer.",
                "transport.",
            ]
            return layers.contains(where: code.hasPrefix) ? code : nil
        }
    }

    private func swiftFiles(in folder: URL) throws -> [URL] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".swift") }
            .map { folder.appending(path: $0) }
    }
}
