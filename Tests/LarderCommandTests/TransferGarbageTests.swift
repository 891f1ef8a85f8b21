import Foundation
import Larder
import LarderAWS
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import LarderCommand

@Suite("transfers gc", .timeLimit(.minutes(10)))
struct TransferGarbageTests {
    private let keyVariables = ["AWS_ACCESS_KEY_ID": "the-key", "AWS_SECRET_ACCESS_KEY": "the-secret"]

    private func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }

    /// Two uploads that have failed: one that the storage has begun, and one of which it is not known whether it has.
    private func failUploads(_ fixture: TransferFixture) async throws -> (named: UUID, unnamed: UUID) {
        let (named, unnamed) = (try await fixture.upload(), try await fixture.upload())
        try await fixture.fail(fixture.begin(named, upload: "a-name"))
        try await fixture.fail(fixture.begin(unnamed, isAsked: true))
        return (named, unnamed)
    }

    @Test("Partial files of transfers that do not go on are told, and removed with --write; no others are")
    func partialFiles() async throws {
        try await TransferFixture.run { fixture in
            let (pending, paused) = (try await fixture.download(), try await fixture.download())
            let (failed, cancelling) = (try await fixture.download(), try await fixture.download())
            try await fixture.withTable { try await $0.pause(paused) }
            try await fixture.fail(fixture.begin(failed, arrived: 9))
            try await fixture.begin(cancelling)
            #expect(try await fixture.larder("transfers", "cancel", cancelling.text, "--write").status == 0)
            #expect(try await fixture.state(of: cancelling) == .cancelling)
            let unknown = UUID()
            let kept = try [pending, paused].map(fixture.partialFile(of:)) + [fixture.partialFile(of: "notes")]
            let removed = try [failed, cancelling, unknown].map(fixture.partialFile(of:))

            let told = try await fixture.larder("transfers", "gc")
            #expect(told.status == 0, "\(told.errors)")
            for (file, state) in zip(removed, ["failed", "cancelling", "unknown"]) {
                #expect(told.output.contains("would remove \(file) "))
                #expect(told.output.split(separator: "\n").contains { $0.contains(file) && $0.hasSuffix(" \(state)") })
            }
            for file in kept { #expect(!told.output.contains(file)) }
            #expect(told.errors == "larder: nothing was removed; --write does it\n")
            #expect((kept + removed).allSatisfy(exists))
            #expect(try await fixture.state(of: cancelling) == .cancelling)

            let done = try await fixture.larder("transfers", "gc", "--write", "--json")
            #expect(done.status == 0, "\(done.errors)")
            #expect(
                done.output.hasPrefix(
                    #"{"larder":1,"command":"transfers gc","result":{"isWritten":true,"files":[{"file":""#))
            #expect(done.output.contains(#""transfer":"\#(unknown.text)","state":null}"#))
            #expect(done.output.hasSuffix(#"],"uploads":[],"cancelled":["\#(cancelling.text)"],"left":[]}}"# + "\n"))
            #expect(kept.allSatisfy(exists))
            #expect(!removed.contains(where: exists))
            #expect(try await fixture.state(of: cancelling) == .cancelled)
            #expect(try await fixture.state(of: failed) == .failed)
            #expect(try await fixture.withTable { try $0.parts(of: failed) } == [])

            let again = try await fixture.larder("transfers", "gc", "--write")
            #expect(again.status == 0)
            #expect(again.output == "")
        }
    }

    @Test("Where transfers have left nothing, gc tells nothing and names no --write")
    func nothingLeft() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.download()
            let told = try await fixture.larder("transfers", "gc")
            #expect(told.status == 0 && told.output == "", "\(told)")
            #expect(told.errors == "")
        }
    }

    @Test("The copy that a killed download has left beside its destination is removed with --write")
    func copyBesideDestination() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.download(to: "movie")
            try await fixture.begin(id)
            #expect(try await fixture.larder("transfers", "cancel", id.text, "--write").status == 0)
            let copy = fixture.folder.appending(path: ".movie.\(id.text).part")
            try Data([1]).write(to: copy)
            let done = try await fixture.larder("transfers", "gc", "--write")
            #expect(done.status == 0 && !exists(copy.path), "\(done.errors)")
            #expect(try await fixture.state(of: id) == .cancelled)
        }
    }

    @Test("Without a storage uploads are left, and it is said of which")
    func withoutStorage() async throws {
        try await TransferFixture.run { fixture in
            let (named, unnamed) = try await failUploads(fixture)
            let told = try await fixture.larder("transfers", "gc")
            #expect(
                told.output.hasPrefix(
                    "would abort a-name of \(named.text) failed media/v/1 a.mov\nwould leave \(unnamed.text): "))
            #expect(told.errors == "larder: nothing was removed; --write does it\n")
            #expect(try await fixture.larder("transfers", "gc", "--json").errors == "")
            let outcome = try await fixture.larder("transfers", "gc", "--write", "--json")
            #expect(outcome.status == 0)
            #expect(
                outcome.output.contains(
                    #""uploads":[],"cancelled":[],"left":[{"transfer":"\#(named.text)","code":"noStorage""#))
            #expect(outcome.output.contains(#"{"transfer":"\#(unnamed.text)","code":"noName""#))
            let text = try await fixture.larder("transfers", "gc", "--write")
            #expect(text.errors.hasPrefix("larder: \(named.text): its upload is at the storage"))
            #expect(try await fixture.withTable { try $0.find(named)?.upload } == "a-name")
        }
    }

    @Test("Each upload that gc leaves is told on standard error, with the reason")
    func toldLeft() async throws {
        try await TransferFixture.run { fixture in
            let (named, unnamed) = try await failUploads(fixture)
            let errors = try await fixture.larder("transfers", "gc", "--write").errors
            #expect(errors.contains("larder: \(named.text): its upload is at the storage"), "\(errors)")
            #expect(errors.contains("larder: \(unnamed.text): the storage was asked to begin"), "\(errors)")
        }
    }

    @Test("JSON names each partial file with its bytes, and each upload with the storage's name for it")
    func json() async throws {
        try await TransferFixture.run { fixture in
            let (upload, download) = (try await fixture.upload(), try await fixture.download())
            try await fixture.fail(fixture.begin(upload, upload: "a-name"))
            try await fixture.fail(fixture.begin(download, arrived: 9))
            try fixture.partialFile(of: download)
            let told = try await fixture.larder("transfers", "gc", "--json").output
            // The bytes are what the file takes on disk, in whole blocks.
            let file = told.firstMatch(of: /"bytes":(\d+),"transfer":"([^"]+)","state":"failed"}],"uploads"/)
            #expect(file.flatMap { Int($0.1) } ?? 0 >= 5000 && file?.2 == download.text[...], "\(told)")
            let place = #""storage":null,"bucket":"media","key":"v/1 a.mov","upload":"a-name""#
            #expect(told.contains(#""uploads":[{"transfer":"\#(upload.text)","state":"failed",\#(place)}]"#), "\(told)")
        }
    }

    @Test("A storage that is named by halves, or without keys, is a usage error, and no key is printed")
    func usage() async throws {
        try await TransferFixture.run { fixture in
            for (arguments, environment) in [
                (["--endpoint", "http://127.0.0.1:9"], keyVariables), (["--path-style"], keyVariables),
                (["--region", "eu-west-1"], ["AWS_ACCESS_KEY_ID": "the-key", "AWS_SECRET_ACCESS_KEY": ""]),
                (["--region", "eu-west-1", "--endpoint", "nowhere"], keyVariables),
                (["--region", "eu-west-1", "--timeout", "0"], keyVariables),
                (["--region", "eu-west-1", "--timeout", "1e9"], keyVariables),
            ] {
                let outcome = try await LarderProcess.run(
                    ["transfers", "gc", "--write", "--store", fixture.store] + arguments, environment: environment)
                #expect(outcome.status == 2, "\(arguments)")
                #expect(!outcome.errors.contains("the-"), "\(outcome.errors)")
            }
        }
    }

    @Test("A storage that cannot be reached is told, with status 1, and nothing is noted")
    func unreachable() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, upload: "a-name"))
            let outcome = try await fixture.larder(
                "transfers", "gc", "--write", "--json", "--region", "eu-west-1", "--endpoint", "http://127.0.0.1:9",
                environment: keyVariables)
            #expect(outcome.status == 1)
            #expect(outcome.output.contains(#""left":[{"transfer":"\#(id.text)","code":"object.unreachable""#))
            #expect(!(outcome.output + outcome.errors).contains("the-secret"))
            #expect(try await fixture.withTable { try $0.find(id)?.upload } == "a-name")
        }
    }

    @Test("Uploads at a storage are left to the original of a store that may be a copy")
    func mayBeCopy() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, upload: "a-name"))
            try fixture.keepDeviceToken()
            let storage = ["--region", "eu-west-1", "--endpoint", "http://127.0.0.1:9"]
            func run(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(
                    ["transfers", "gc", "--store", fixture.store, "--json"] + storage + arguments,
                    environment: keyVariables)
            }
            #expect(try await run([]).status == 0)
            let refused = try await run(["--write"])
            #expect(refused.status == 4 && refused.errors.contains("command.mayBeCopy"), "\(refused.errors)")
            #expect(refused.output == "")
            let asked = try await run(["--write", "--not-a-copy"])
            #expect(asked.output.contains("object.unreachable"), "\(asked.errors)")
            // It leaves the token as it is: the program, and the next clearing, find the store their own.
            let tokens = fixture.folder.appending(path: "tokens").path
            for _ in 0..<2 {
                let known = try await run(["--write", "--device-tokens", tokens])
                #expect(known.output.contains("object.unreachable"), "\(known.errors)")
            }
            let foreign = try await run(["--write", "--device-tokens", fixture.folder.path])
            #expect(foreign.status == 4 && foreign.errors.contains("command.mayBeCopy"), "\(foreign.errors)")
        }
    }

    @Test("Where no storage is named, partial files of a store that may be a copy are removed all the same")
    func mayBeCopyWithoutStorage() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.download()
            try await fixture.fail(fixture.begin(id, arrived: 9))
            let file = try fixture.partialFile(of: id)
            try fixture.keepDeviceToken()
            let outcome = try await fixture.larder("transfers", "gc", "--write")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(!exists(file))
        }
    }

    @Test("Remains that a program's runner clears away itself are left to it")
    func leavesToRunner() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, upload: "a-name"))
            try await fixture.withPartition { app in
                var options = S3Transport.Options()
                options.endpoint = URL(string: "http://127.0.0.1:9")
                let keys = Credentials.CloudCredentials(accessKeyID: "a", secretAccessKey: "b", expires: nil)
                try await S3Transport.withTransport(
                    region: "eu-west-1", credentials: { _ in keys }, options: options
                ) { storage in
                    let runner = TransferRunner(app, storage: storage)
                    let running = Task { try await runner.run() }
                    try await eventually { runner.state == .running }
                    let outcome = try await fixture.larder("transfers", "gc", "--write", "--json")
                    running.cancel()
                    try await running.value
                    #expect(outcome.status == 0)
                    #expect(outcome.output.contains(#""left":[{"transfer":"\#(id.text)","code":"runnerWorks""#))
                }
            }
        }
    }

    @Test(
        "What was aborted and what was noted as cancelled is told, each transfer as what it is",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))
    func toldUploads() async throws {
        try await StorageServer.run { server in
            try await TransferFixture.run { fixture in
                let place = ObjectLocation(bucket: server.bucket, key: "k", region: StorageServer.region)
                let (failed, cancelling) = (try await fixture.upload(to: place), try await fixture.upload(to: place))
                // The storage knows neither of them, which is as good as aborted.
                try await fixture.fail(fixture.begin(failed, upload: "first"))
                try await fixture.begin(cancelling, upload: "second")
                try await fixture.withTable { _ = try await $0.cancel(cancelling, now: Date()) }
                let done = try await fixture.larder(
                    "transfers", "gc", "--write", "--region", StorageServer.region, "--endpoint",
                    server.url.absoluteString, "--path-style",
                    environment: [
                        "AWS_ACCESS_KEY_ID": server.accessKeyID, "AWS_SECRET_ACCESS_KEY": server.secretAccessKey,
                    ])
                #expect(done.status == 0, "\(done.errors)")
                let lines = done.output.split(separator: "\n")
                #expect(lines.count == 3 && lines.last == "noted as cancelled \(cancelling.text)", "\(done.output)")
                #expect(done.output.contains("aborted first of \(failed.text) failed "), "\(done.output)")
                #expect(done.output.contains("aborted second of \(cancelling.text) cancelling "), "\(done.output)")
            }
        }
    }

    @Test(
        "Uploads of failed and cancelled transfers are aborted at the storage, and no others",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))
    func uploads() async throws {
        try await StorageServer.run { server in
            try await TransferFixture.run { fixture in
                var options = S3Transport.Options()
                options.endpoint = server.url
                let keys = Credentials.CloudCredentials(
                    accessKeyID: server.accessKeyID, secretAccessKey: server.secretAccessKey, expires: nil)
                try await S3Transport.withTransport(
                    region: StorageServer.region, credentials: { _ in keys }, options: options
                ) { storage in
                    let location = ObjectLocation(bucket: server.bucket, key: "a b/é.mov")
                    func begun() async throws -> String {
                        try await storage.beginUpload(to: location, ObjectAttributes(), within: .seconds(30))
                            .id
                    }
                    func listed() async throws -> Set<String> {
                        Set(
                            try await storage.uploads(
                                in: server.bucket, region: nil, prefix: "", within: .seconds(30)
                            ).map(\.id))
                    }
                    let (failed, cancelling, running) = (
                        try await fixture.upload(to: location), try await fixture.upload(to: location),
                        try await fixture.upload(to: location)
                    )
                    try await fixture.fail(fixture.begin(failed, upload: try await begun()))
                    try await fixture.begin(cancelling, upload: try await begun())
                    try await fixture.withTable { _ = try await $0.cancel(cancelling, now: Date()) }
                    let kept = Set([try await begun(), try await begun()])
                    try await fixture.begin(running, upload: kept.first)
                    #expect(try await listed().count == 4)

                    func collect(secret: String, token: String = "") async throws -> Outcome {
                        try await fixture.larder(
                            "transfers", "gc", "--write", "--json", "--region", StorageServer.region, "--endpoint",
                            server.url.absoluteString, "--path-style",
                            environment: [
                                "AWS_ACCESS_KEY_ID": server.accessKeyID, "AWS_SECRET_ACCESS_KEY": secret,
                                "AWS_SESSION_TOKEN": token,
                            ])
                    }
                    let refused = try await collect(secret: "not-the-secret")
                    #expect(refused.status == 1)
                    #expect(refused.output.contains(#""code":"object.invalidCredentials""#), "\(refused.output)")
                    #expect(!(refused.output + refused.errors).contains("not-the-secret"))
                    #expect(try await listed().count == 4)

                    // The keys are right, and of a user for whom there is no token.
                    let unknown = try await collect(secret: server.secretAccessKey, token: "not-the-token")
                    #expect(unknown.status == 1)
                    #expect(unknown.output.contains(#""code":"object.invalidCredentials""#), "\(unknown.output)")
                    #expect(!(unknown.output + unknown.errors).contains("not-the-token"))
                    #expect(try await listed().count == 4)

                    let outcome = try await collect(secret: server.secretAccessKey)
                    #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
                    #expect(outcome.output.contains(#""cancelled":["\#(cancelling.text)"],"left":[]}}"#))
                    #expect(!outcome.output.contains(server.secretAccessKey))
                    #expect(try await listed() == kept)
                    #expect(try await fixture.state(of: cancelling) == .cancelled)
                    #expect(try await fixture.withTable { try $0.find(failed)?.upload } == nil)
                    #expect(try await fixture.withTable { try $0.find(running)?.upload } == kept.first)
                }
            }
        }
    }

    @Test("The partial file of a transfer that is under way stays where it is")
    func underWay() async throws {
        try await TransferFixture.run { fixture in
            let running = try await fixture.download()
            try await fixture.begin(running, arrived: 9)
            let file = try fixture.partialFile(of: running)
            let told = try await fixture.larder("transfers", "gc")
            #expect(told.status == 0 && told.output == "", "\(told)")
            #expect(try await fixture.larder("transfers", "gc", "--write").status == 0)
            #expect(exists(file))
        }
    }

    @Test("A partial file of no known transfer is removed from a store that may be a copy")
    func filesOfCopy() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.upload()
            try fixture.keepDeviceToken()
            let file = try fixture.partialFile(of: UUID())
            let done = try await fixture.larder("transfers", "gc", "--write")
            #expect(done.status == 0, "\(done.errors)")
            #expect(!exists(file))
        }
    }

    @Test("Remains that cannot be reached or removed are a failure, and remains left for another reason are not")
    func failures() {
        let object = ObjectError(.unreachable, "it")
        let local = LarderError(.init(rawValue: "operations.storage"), "it")
        let reasons: [(TransferRemains.Left.Reason, Bool)] = [
            (.object(object), true), (.local(local), true), (.runnerWorks, false), (.noStorage, false),
            (.noName, false),
        ]
        for (reason, isFailure) in reasons {
            #expect(TransferRemains.Left(transfer: UUID(), reason: reason).isFailure == isFailure, "\(reason)")
        }
    }

    @Test("A silent storage is given up after the time that --timeout says, and the status is 1")
    func silentStorage() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, upload: "a-name"))
            let storage = try SilentListener()
            let start = SuspendingClock.now
            let outcome = try await fixture.larder(
                "transfers", "gc", "--write", "--json", "--region", "eu-west-1", "--endpoint",
                "http://127.0.0.1:\(storage.port)", "--path-style", "--timeout", "0.3",
                environment: keyVariables)
            #expect(outcome.status == 1, "\(outcome.errors)")
            let left = #""left":[{"transfer":"\#(id.text)","code":"object.timedOut""#
            #expect(outcome.output.contains(left), "\(outcome)")
            #expect(storage.isAsked && start.duration(to: .now) < .seconds(20))
        }
    }

    @Test("A partial file that a transfer has left which is done is removed")
    func fileOfDone() async throws {
        try await TransferFixture.run { fixture in
            let done = try await fixture.upload()
            let attempt = try await fixture.begin(done)
            try await fixture.withTable { table in
                try await table.finish(attempt, etag: "\"e\"", version: "7", crc32c: 0xAB, now: Date())
            }
            let file = try fixture.partialFile(of: done)
            let outcome = try await fixture.larder("transfers", "gc", "--write")
            #expect(outcome.status == 0 && outcome.output.hasSuffix(" done\n"), "\(outcome)")
            #expect(!FileManager.default.fileExists(atPath: file))
        }
    }

    @Test("While the runner of one partition holds its lock, gc removes another partition's partial file")
    func otherPartition() async throws {
        try await TransferFixture.run { fixture in
            let left = try await fixture.download()
            let draft = TransferDraft(
                partition: "other", kind: .download, bucket: "b", key: "k",
                path: fixture.folder.appending(path: "copy").path, created: Date())
            try await fixture.withTable { try await $0.enqueue([draft]) }
            for id in [left, draft.id] { try await fixture.fail(fixture.begin(id, arrived: 9)) }
            let (kept, removed) = (try fixture.partialFile(of: left), try fixture.partialFile(of: draft.id))
            // The lock that the runner of the first partition would hold.
            let lock = try LockFile(making: "\(fixture.store)/locks/main.transfers")
            #expect(try lock.tryLock(.exclusive))
            let done = try await fixture.larder("transfers", "gc", "--write", "--json")
            lock.close()
            let told = #""left":[{"transfer":"\#(left.text)","code":"runnerWorks""#
            #expect(done.status == 0 && done.output.contains(told), "\(done)")
            #expect(exists(kept) && !exists(removed))
        }
    }

    @Test("An upload that gc leaves keeps it from no other transfer of the partition")
    func besideLeft() async throws {
        try await TransferFixture.run { fixture in
            let (upload, download) = (try await fixture.upload(), try await fixture.download())
            try await fixture.fail(fixture.begin(upload, upload: "a-name"))
            try await fixture.fail(fixture.begin(download, arrived: 9))
            let file = try fixture.partialFile(of: download)
            let done = try await fixture.larder("transfers", "gc", "--write", "--json")
            let left = #""left":[{"transfer":"\#(upload.text)","code":"noStorage""#
            #expect(done.status == 0 && done.output.contains(left), "\(done)")
            #expect(!exists(file))
        }
    }

    @Test("JSON says in words, too, why gc leaves an upload")
    func reasonInJSON() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.fail(fixture.begin(fixture.upload(), upload: "a-name"))
            let done = try await fixture.larder("transfers", "gc", "--write", "--json").output
            #expect(done.contains(#""code":"noStorage","reason":"its upload is at the storage"#), "\(done)")
        }
    }

    @Test("Where gc is refused on a store that may be a copy, partial files of no known transfer stay as well")
    func refusedWhole() async throws {
        try await TransferFixture.run { fixture in
            let file = try fixture.partialFile(of: UUID())
            try await fixture.fail(fixture.begin(fixture.upload(), upload: "a-name"))
            try fixture.keepDeviceToken()
            let refused = try await fixture.larder(
                "transfers", "gc", "--write", "--region", "eu-west-1", "--endpoint", "http://127.0.0.1:9",
                environment: keyVariables)
            #expect(refused.status == 4 && exists(file), "\(refused)")
        }
    }
}
