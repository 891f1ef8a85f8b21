import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization
import Testing

@Suite(
    "Transfers to a storage that knows neither bucket nor user",
    .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"),
    .timeLimit(.minutes(10)))
struct WrongPlaceTests {
    @Test("A bucket that is not there ends both with that")
    func bucket() async throws {
        try await withStorage { _, storage in
            try await TransferBench.run { bench in
                let elsewhere = ObjectLocation(bucket: "no-such-bucket", key: "a")
                let upload = try await bench.app.transfers.upload(bench.source, to: elsewhere)
                let download = try await bench.app.transfers.download(elsewhere, to: bench.copy)
                try await bench.runner(storage).drain()
                try await bench.expectFailed(upload, .noSuchBucket)
                try await bench.expectFailed(download, .noSuchBucket)
            }
        }
    }

    @Test(
        "Credentials that are not taken lose nothing: transfers wait, say why, and go on with others",
        arguments: [
            ("AKIANOBODY", nil), (nil, "wrong"),
        ] as [(String?, String?)])
    func credentials(key: String?, secret: String?) async throws {
        try await withStorage { server, good in
            try await TransferBench.run { bench in
                let (there, here) = (server.location("there"), server.location("here"))
                _ = try await good.put(ObjectBody(TransferBench.bytes), to: there, ObjectAttributes(), idle: .ample)
                let areGood = Mutex(false)
                let right = Credentials.CloudCredentials(
                    accessKeyID: server.accessKeyID, secretAccessKey: server.secretAccessKey, expires: nil)
                let wrong = Credentials.CloudCredentials(
                    accessKeyID: key ?? server.accessKeyID, secretAccessKey: secret ?? server.secretAccessKey,
                    expires: nil)
                var options = S3Transport.Options()
                options.endpoint = server.url
                try await S3Transport.withTransport(
                    region: StorageServer.region, credentials: { _ in areGood.withLock { $0 } ? right : wrong },
                    options: options
                ) { storage in
                    let upload = try await bench.app.transfers.upload(bench.source, to: here)
                    let download = try await bench.app.transfers.download(there, to: bench.copy)
                    let runner = bench.runner(storage)
                    let task = Task { try await runner.run() }
                    for transfer in [upload, download] {
                        while try transfer.status().failure?.code.rawValue != "object.invalidCredentials" {
                            try await Task.sleep(for: .milliseconds(2))
                        }
                    }
                    try await eventually { runner.state == .waitingForSignIn }
                    #expect(
                        try [upload, download].allSatisfy { try [.pending, .running].contains($0.status().state) })
                    areGood.withLock { $0 = true }
                    runner.resume()
                    try await upload.finished(within: .seconds(60))
                    try await download.finished(within: .seconds(60))
                    task.cancel()
                    try await task.value
                }
                #expect(try await good.bytes(of: here) == TransferBench.bytes)
                #expect(try Array(Data(contentsOf: bench.copy)) == TransferBench.bytes)
            }
        }
    }

    /// As S3 allows them: 1 to 1,024 bytes of UTF-8. Those that the server of these tests does not find again, with
    /// line feeds, empty names or dots between slashes, are with the addresses.
    private static let keys: [String] = {
        // Each character of ASCII, sixteen at a time.
        let ascii = (0..<8).map { block in
            var characters = String.UnicodeScalarView()
            for code in block * 16..<block * 16 + 16 where code != 10 { characters.append(Unicode.Scalar(UInt8(code))) }
            return "k" + String(characters)
        }
        let others: [String] = [
            "a b+c%20d%2Fe%", "trailing/", "a?b#c&d=e;f", "<xml>&amp;\"'", "e\u{301}", "\u{E9}", "\u{FEFF}a",
            "🍲🥣👩‍👩‍👧", "\t", "\u{10FFFF}\u{E000}", String(repeating: "ä", count: 450),
            "ends.", "~-._*'()!", "\\", "http:/x", "a:b@c", "[a]{b}|^`",
        ]
        return ascii + others
    }()

    @Test("Keys of every character go and come back, in one piece and in parts", arguments: keys)
    func roundTrip(key: String) async throws {
        try await withStorage {
            $0.limits.smallestPart = 1024
        } _: { server, storage in
            try await TransferBench.run { bench in
                var options = bench.options
                // The server of these tests lists uploads in XML that cannot hold them all, whatever it is asked.
                let isListed = key.unicodeScalars.allSatisfy { $0.value >= 0x20 }
                for (name, threshold) in [("one", Int64(4 << 10)), ("parts", 1024)] where name == "one" || isListed {
                    options.multipartThreshold = threshold
                    let place = server.location(key)
                    let upload = try await bench.app.transfers.upload(bench.source, to: place)
                    #expect(try upload.status().location == place)
                    try await TransferRunner(bench.app, storage: storage, options: options).drain()
                    try await upload.finished(within: .zero)
                    let copy = bench.folder.appending(path: name)
                    let download = try await bench.app.transfers.download(place, to: copy)
                    try await TransferRunner(bench.app, storage: storage, options: options).drain()
                    try await download.finished(within: .zero)
                    #expect(try Array(Data(contentsOf: copy)) == TransferBench.bytes)
                }
            }
        }
    }
}
