import Foundation
import Larder
import LarderOperations
import Testing

@Suite("Transfers from the command line", .timeLimit(.minutes(10)))
struct TransferVerbTests {
    @Test("Transfers are listed in their order, with states, bytes and failures on a line each")
    func list() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload())
            let third = try await fixture.download(to: "d")
            try await fixture.fail(fixture.begin(first))
            try await fixture.begin(second, arrived: 100_000)
            let outcome = try await fixture.larder("transfers")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let source = fixture.source.path
            #expect(
                outcome.output.split(separator: "\n").map { $0.replacing(/\S+Z \(\d+ (s|min) ago\)/) { _ in "time" } }
                    == [
                        "failed \(first.text) upload 0/300000 1 media/v/1 a.mov \(source) main time object.accessDenied: "
                            + "not allowed",
                        "running \(second.text) upload 100000/300000 1 media/v/1 a.mov \(source) main time",
                        "pending \(third.text) download 0/- 0 media/v/1 a.mov \(fixture.folder.path)/d main time",
                    ])
            let some = try await fixture.larder("transfers", "list", "--state", "running", "--json")
            #expect(
                some.output.hasPrefix(
                    #"""
                    {"larder":1,"command":"transfers list","result":{"transfers":[{"id":"\#(second.text)","sequence":2,\#
                    "partition":"
                    """#))
            #expect(
                some.output.contains(
                    #"""
                    "kind":"upload","state":"running","storage":null,"bucket":"media","key":"v/1 a.mov",\#
                    "region":"eu-west-1","file":"\#(source)","priority":0,"size":300000,"arrived":100000,"attempts":1,"created":"
                    """#))
            #expect(some.output.hasSuffix(#"","environment":null,"user":null}],"hasMore":false}}"# + "\n"))
            let limited = try await fixture.larder("transfers", "list", "--limit", "1", "--json")
            #expect(
                limited.output.contains(#""failure":{"code":"object.accessDenied","message":"not\nallowed","time":""#))
            #expect(limited.output.contains(#""hasMore":true"#))
        }
    }

    @Test("Metadata that is damaged is told as that, and never printed into the JSON")
    func damagedMetadata() async throws {
        try await TransferFixture.run { fixture in
            let sound = try await fixture.download()
            let partition = try #require(try await fixture.withTable { try $0.find(sound)?.partition })
            let draft = TransferDraft(
                partition: partition, kind: .download, bucket: "media", key: "k", path: "/copy",
                metadata: Array(#"},"forged":{"#.utf8), created: Date())
            try await fixture.withTable { try await $0.enqueue([draft]) }
            let shown = try await fixture.larder("transfers", "show", draft.id.text, "--json")
            #expect(shown.status == 5)
            #expect(!shown.output.contains("forged"), "\(shown.output)")
            #expect(shown.errors.contains(#""code":"operations.damagedRow""#), "\(shown.errors)")
            let listed = try await fixture.larder("transfers", "list", "--json")
            #expect(listed.status == 0 && listed.output.contains(sound.text), "\(listed.errors)")
            #expect(!listed.output.contains("forged"), "\(listed.output)")
        }
    }

    @Test("A transfer is shown whole, with the mutations that wait for it")
    func show() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload(
                UploadOptions(
                    attributes: ObjectAttributes(contentType: "video/quicktime", metadata: ["a": "b"]), priority: 3,
                    expires: Date(timeIntervalSince1970: 4_000_000_000)))
            let mutation = try await fixture.withPartition { app in
                try await app.enqueue(
                    GraphQLOperation(
                        "mutation Add($file: S3ObjectInput) { add(title: \"a\", file: $file) { id } }", variables: [:]),
                    options: MutationOptions(files: [MutationFile(app.transfers[TransferID(id)], in: "file")])
                ).id
            }
            try await fixture.begin(id, arrived: 100_000, upload: "the-name")
            let json = try await fixture.larder("transfers", "show", id.text, "--json")
            #expect(json.status == 0, "\(json.errors)")
            #expect(json.output.contains(#""priority":3,"#))
            #expect(
                json.output.hasSuffix(
                    #"""
                    ,"replaces":false,"contentType":"video/quicktime","metadata":{"a":"b"},"partSize":100000,"parts":1,\#
                    "upload":"the-name","etag":null,"version":null,"crc32c":null,"sha256":null,\#
                    "expires":"2096-10-02T07:06:40Z",\#
                    "notBefore":null,"ended":null,"mutations":["\#(mutation)"]}}
                    """# + "\n"))
            let text = try await fixture.larder("transfers", "show", id.text)
            #expect(text.output.hasPrefix("running \(id.text) upload 100000/300000 1 "))
            #expect(text.output.contains("\nparts 1 of 100000 bytes\nupload the-name\nwaiting mutation \(mutation)\n"))
            try await fixture.withTable { table in
                let attempt = try #require(try table.find(id)).attempt
                try await table.finish(attempt, etag: "\"e\"", version: "7", crc32c: 0xAB, now: Date())
            }
            let done = try await fixture.larder("transfers", "show", id.text)
            #expect(done.output.hasPrefix("done \(id.text) upload 300000/300000 1 "))
            #expect(done.output.contains("\netag \"e\"\nversion 7\ncrc32c 000000ab\n"))
            let members = try await fixture.larder("transfers", "show", id.text, "--json").output
            #expect(members.contains(#""etag":"\"e\"","version":"7","crc32c":"000000ab""#), "\(members)")
            #expect(done.output.contains(/\nended \S+Z \(\d+ s ago\)\n/), "\(done.output)")
        }
    }

    @Test("Each change wants --write, is made, and is refused in another state")
    func change() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload().text
            for verb in ["pause", "resume", "retry", "cancel"] {
                let refused = try await fixture.larder("transfers", verb, id, "--json")
                #expect(refused.status == 4)
                #expect(
                    refused.errors.contains(#""command":"transfers \#(verb)","error":{"code":"command.notConfirmed""#))
            }
            let paused = try await fixture.larder("transfers", "pause", id, "--write", "--json")
            #expect(
                paused.output == #"{"larder":1,"command":"transfers pause","result":{"id":"\#(id)","did":"pause"}}"#
                    + "\n")
            #expect(try await fixture.larder("transfers").output.hasPrefix("paused \(id) "))
            for verb in ["pause", "retry"] {
                let wrong = try await fixture.larder("transfers", verb, id, "--write", "--json")
                #expect(wrong.status == 4)
                #expect(wrong.errors.contains(#""code":"operations.wrongState""#))
            }
            #expect(try await fixture.larder("transfers", "resume", id, "--write").output == "resumed \(id)\n")
            #expect(try await fixture.larder("transfers").output.hasPrefix("pending \(id) "))
            #expect(
                try await fixture.larder("transfers", "cancel", id, "--write", "--json").output.contains(
                    #""did":"cancel","setAside":[]"#))
            #expect(try await fixture.larder("transfers").output.hasPrefix("cancelled \(id) "))
            #expect(try await fixture.larder("transfers", "cancel", id, "--write").status == 4)
        }
    }

    @Test("Cancelling names the mutations that are set aside because of it, and retrying lets them wait again")
    func dependents() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let mutation = try await fixture.withPartition { app in
                try await app.enqueue(
                    GraphQLOperation("mutation Add($file: S3ObjectInput) { add(title: \"a\", file: $file) { id } }"),
                    options: MutationOptions(files: [MutationFile(app.transfers[TransferID(id)], in: "file")])
                ).id
            }
            try await fixture.fail(fixture.begin(id))
            #expect(try await fixture.larder("mutations").output.hasPrefix("deadLetter \(mutation) "))
            #expect(try await fixture.larder("transfers", "retry", id.text, "--write").output == "retried \(id.text)\n")
            #expect(try await fixture.larder("mutations").output.hasPrefix("pending \(mutation) "))
            let cancelled = try await fixture.larder("transfers", "cancel", id.text, "--write")
            #expect(cancelled.output == "cancelled \(id.text)\nset aside mutation \(mutation)\n")
        }
    }

    @Test("A retried upload is of the file as it is now; where there is none, it stays failed")
    func retry() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id, arrived: 100_000))
            try FileManager.default.removeItem(at: fixture.source)
            let missing = try await fixture.larder("transfers", "retry", id.text, "--write", "--json")
            #expect(missing.status == 1)
            #expect(missing.errors.contains(#""code":"transfer.sourceMissing""#))
            #expect(try await fixture.state(of: id) == .failed)
            try Data(repeating: 8, count: 400_000).write(to: fixture.source)
            #expect(try await fixture.larder("transfers", "retry", id.text, "--write").status == 0)
            let found = try await fixture.withTable { try $0.find(id) }
            #expect(found?.state == .pending)
            #expect(found?.size == 400_000)
            #expect(found?.arrived == 0)
        }
    }

    @Test("Clearing is refused while an upload has not arrived, unless it is said what becomes of it")
    func cleared() async throws {
        try await TransferFixture.run { fixture in
            let (upload, download) = (try await fixture.upload(), try await fixture.download())
            let refused = try await fixture.larder("clear", "--write", "--json")
            #expect(refused.status == 4)
            #expect(refused.errors.contains(#""code":"operations.unsentWork""#))
            #expect(refused.errors.contains("and 1 upload;"))
            #expect(try await fixture.larder("clear", "--write", "--unsent", "keep").status == 0)
            #expect(try await fixture.state(of: upload) == .pending)
            #expect(try await fixture.larder("clear", "--write", "--unsent", "discard").status == 0)
            #expect(try await fixture.state(of: upload) == .cancelled)
            #expect(try await fixture.state(of: download) == .pending)
        }
    }

    @Test("A missing transfer, a bad id, a bad state and no store each have their exit status")
    func failures() async throws {
        try await TransferFixture.run { fixture in
            let id = UUID().text
            for stage in ["nothing queued", "something queued"] {
                for arguments in [["show", id], ["watch", id], ["pause", id, "--write"], ["retry", id, "--write"]] {
                    let outcome = try await LarderProcess.run(["transfers"] + arguments + ["--store", fixture.store])
                    #expect(outcome.status == 3, "\(stage): \(arguments)")
                    #expect(outcome.output == "")
                    #expect(outcome.errors.hasPrefix("larder: There is no transfer \(id)"), "\(outcome.errors)")
                }
                _ = try await fixture.upload()
            }
            for arguments in [
                ["show"], ["show", "x"], ["pause", "x", "--write"], ["watch", "x"], ["--state", "x"],
                ["--limit", "x"], ["watch", "--count", "0"], ["list", "--limit=-1"], ["gc", id],
            ] {
                let outcome = try await LarderProcess.run(["transfers"] + arguments + ["--store", fixture.store])
                #expect(outcome.status == 2, "\(arguments)")
            }
            #expect(try await LarderProcess.run(["transfers", "--store", fixture.store + "/none"]).status == 1)
        }
    }

    @Test("A transfer that is tried again later is shown with the time before which it is not")
    func shownPause() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let attempt = try await fixture.begin(id)
            let failure = TransferFailure(code: "object.throttled", message: "slow down", time: Date())
            let time = Date(timeIntervalSince1970: 4_000_000_000)
            try await fixture.withTable { try await $0.retryLater(attempt, at: time, failure, now: Date()) }
            let shown = try await fixture.larder("transfers", "show", id.text)
            #expect(shown.output.contains("\nnot before 2096-10-02T07:06:40Z (in "), "\(shown)")
        }
    }

    @Test("A transfer is shown in JSON with the earliest time of its next attempt, and with the time of its end")
    func times() async throws {
        try await TransferFixture.run { fixture in
            let (later, done) = (try await fixture.upload(), try await fixture.upload())
            let (pause, end) = (try await fixture.begin(later), try await fixture.begin(done))
            let failure = TransferFailure(code: "object.throttled", message: "slow down", time: Date())
            let time = Date(timeIntervalSince1970: 4_000_000_000)
            try await fixture.withTable { table in
                try await table.retryLater(pause, at: time, failure, now: Date())
                try await table.finish(end, etag: "\"e\"", now: Date(timeIntervalSince1970: 1_800_000_000))
            }
            let waiting = try await fixture.larder("transfers", "show", later.text, "--json").output
            #expect(waiting.contains(#""notBefore":"2096-10-02T07:06:40Z","ended":null,"#), "\(waiting)")
            let ended = try await fixture.larder("transfers", "show", done.text, "--json").output
            #expect(ended.contains(#""notBefore":null,"ended":"2027-01-15T08:00:00Z","#), "\(ended)")
        }
    }

    @Test("A transfer is shown with the SHA-256 that it must have, in 64 hexadecimal digits")
    func digest() async throws {
        try await TransferFixture.run { fixture in
            let other = try await fixture.download()
            let partition = try #require(try await fixture.withTable { try $0.find(other)?.partition })
            let draft = TransferDraft(
                partition: partition, kind: .download, bucket: "media", key: "k", path: "/copy",
                sha256: Array(repeating: 0x0A, count: 32), created: Date())
            try await fixture.withTable { try await $0.enqueue([draft]) }
            let digits = String(repeating: "0a", count: 32)
            let json = try await fixture.larder("transfers", "show", draft.id.text, "--json").output
            #expect(json.contains(#""sha256":"\#(digits)""#), "\(json)")
            let text = try await fixture.larder("transfers", "show", draft.id.text).output
            #expect(text.contains("\nsha256 \(digits)\n"), "\(text)")
        }
    }

    @Test("Of a mutation with two files each of the two uploads is shown with it")
    func mutationsOfEach() async throws {
        try await TransferFixture.run { fixture in
            let uploads = [try await fixture.upload(), try await fixture.upload()]
            let id = try await fixture.withPartition { app in
                let both = GraphQLOperation(
                    """
                    mutation Add($a: S3ObjectInput, $b: S3ObjectInput) {
                      first: add(title: "a", file: $a) { id } second: add(title: "b", file: $b) { id }
                    }
                    """)
                let files = zip(uploads, ["a", "b"]).map { MutationFile(app.transfers[TransferID($0)], in: $1) }
                return try await app.enqueue(both, options: MutationOptions(files: files)).id
            }
            for upload in uploads {
                let shown = try await fixture.larder("transfers", "show", upload.text, "--json").output
                #expect(shown.contains(#""mutations":["\#(id)"]"#), "\(shown)")
            }
        }
    }

    @Test("Transfers are listed in the order in which they were queued, whatever their priority")
    func listedByAge() async throws {
        try await TransferFixture.run { fixture in
            let (first, second) = (try await fixture.upload(), try await fixture.upload(UploadOptions(priority: 9)))
            let outcome = try await fixture.larder("transfers")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.first?.hasPrefix("pending \(first.text) ") == true, "\(outcome)")
            #expect(lines.last?.hasPrefix("pending \(second.text) ") == true, "\(outcome)")
        }
    }

    @Test("Transfers that are done or cancelled are listed too")
    func listedEnds() async throws {
        try await TransferFixture.run { fixture in
            let (done, cancelled) = (try await fixture.upload(), try await fixture.upload())
            let attempt = try await fixture.begin(done)
            try await fixture.withTable { table in
                try await table.finish(attempt, etag: "\"e\"", now: Date())
                _ = try await table.cancel(cancelled, now: Date())
            }
            let outcome = try await fixture.larder("transfers")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.first?.hasPrefix("done \(done.text) ") == true, "\(outcome)")
            #expect(lines.last?.hasPrefix("cancelled \(cancelled.text) ") == true, "\(outcome)")
        }
    }

    @Test("JSON says whether a download replaces a file at its path", arguments: [true, false])
    func replacing(isReplacing: Bool) async throws {
        try await TransferFixture.run { fixture in
            let other = try await fixture.upload()
            let partition = try #require(try await fixture.withTable { try $0.find(other)?.partition })
            let draft = TransferDraft(
                partition: partition, kind: .download, bucket: "media", key: "k", path: "/copy", replaces: isReplacing,
                created: Date())
            try await fixture.withTable { try await $0.enqueue([draft]) }
            let json = try await fixture.larder("transfers", "show", draft.id.text, "--json").output
            #expect(json.contains(#","replaces":\#(isReplacing),"#), "\(json)")
        }
    }

    @Test("A transfer is shown with how long ago it was queued")
    func shownCreation() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            let shown = try await fixture.larder("transfers", "show", id.text)
            #expect(shown.output.contains(/\ncreated \S+Z \(\d+ (s|min) ago\)\n/), "\(shown)")
        }
    }

    @Test("A transfer is shown with the time at which it expires, and how far that is from now")
    func shownExpiry() async throws {
        try await TransferFixture.run { fixture in
            var options = UploadOptions()
            options.expires = Date(timeIntervalSince1970: 4_000_000_000)
            let id = try await fixture.upload(options)
            let shown = try await fixture.larder("transfers", "show", id.text)
            #expect(shown.output.contains("\nexpires 2096-10-02T07:06:40Z (in "), "\(shown)")
        }
    }

    @Test("JSON gives the time at which a transfer failed")
    func failureTime() async throws {
        try await TransferFixture.run { fixture in
            let attempt = try await fixture.begin(fixture.upload())
            let time = Date(timeIntervalSince1970: 1_800_000_000)
            try await fixture.withTable { table in
                let failure = TransferFailure(code: "object.accessDenied", message: "no", time: time)
                _ = try await table.fail(attempt, failure, now: time)
            }
            let listed = try await fixture.larder("transfers", "--json").output
            #expect(listed.contains(#""message":"no","time":"2027-01-15T08:00:00Z"}"#), "\(listed)")
        }
    }

    @Test("JSON has no size of a download of which nothing is known yet")
    func unknownSize() async throws {
        try await TransferFixture.run { fixture in
            _ = try await fixture.download()
            let listed = try await fixture.larder("transfers", "--json").output
            #expect(listed.contains(#""size":null,"arrived":0,"#), "\(listed)")
        }
    }

    @Test("clear without --write is refused, and gives up nothing, whatever --unsent says")
    func clearedWithoutWrite() async throws {
        try await TransferFixture.run { fixture in
            let upload = try await fixture.upload()
            let refused = try await fixture.larder("clear", "--unsent", "discard")
            #expect(refused.status == 4 && refused.errors.contains("--write"), "\(refused)")
            #expect(try await fixture.state(of: upload) == .pending)
        }
    }
}
