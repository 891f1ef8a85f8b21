import Foundation
import Larder
import ObjectServer

extension Bench {
    private static let size = 1 << 30

    /// A file of 1 GiB that goes up and comes down, each in a process of its own, with a server in another.
    func largeFile() async throws -> [BenchRow] {
        let folder = URL(filePath: freshPath("large"))
        defer { remove(folder.path) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = LargeFile(folder: folder)
        try file.make(size: Self.size)
        let rounds = max(rounds / 3, 3)
        var peaks: [Int] = []
        var rows: [BenchRow] = []
        try await ChildProcess.withObjectServer { server in
            let up = try await Measurement.times(
                rounds: rounds,
                [
                    { try await file.upload(to: server, &peaks) }, { try file.curlUp(to: server) },
                ])
            let down = try await Measurement.times(
                rounds: rounds,
                [
                    { try await file.download(from: server, size: Self.size, &peaks) },
                    { try file.curlDown(from: server) },
                ])
            rows += [
                BenchRow(
                    name: "upload-1GiB", what: "1 GiB up over loopback, as a process", up, floorName: "curl -T",
                    reach: .ratio(1.1), note: "to a server that looks at nothing"),
                BenchRow(
                    name: "download-1GiB", what: "1 GiB down over loopback, on disk, as a process", down,
                    floorName: "curl -o, on disk", reach: .ratio(1.1)),
            ]
        }
        if let peak = peaks.max() {
            rows.append(
                BenchRow(
                    name: "1GiB-memory", what: "the most memory of those processes", unit: .bytes, value: Double(peak),
                    reach: .most(Double(64 << 20))))
        }
        return rows
    }
}

/// The file that goes up and comes down.
private struct LargeFile {
    let folder: URL
    private var source: URL { folder.appending(path: "source") }
    private var copy: URL { folder.appending(path: "copy") }
    private let location = ObjectLocation(bucket: ObjectServer.bucket, key: "large")

    init(folder: URL) { self.folder = folder }

    func make(size: Int) throws {
        try Data().write(to: source)
        let file = try FileHandle(forWritingTo: source)
        // Zeros, as the server gives them back; not a sparse file, which costs less to read.
        let block = Data(count: 1 << 20)
        for _ in 0..<(size >> 20) { try file.write(contentsOf: block) }
        try file.synchronize()
        try file.close()
    }

    // MARK: Ours

    func upload(to server: String, _ peaks: inout [Int]) async throws -> Double {
        try await carry(server, &peaks) { try await $0.upload(source, to: location) }
    }

    func download(from server: String, size: Int, _ peaks: inout [Int]) async throws -> Double {
        try? FileManager.default.removeItem(at: copy)
        let time = try await carry(server, &peaks) { try await $0.download(location, to: copy) }
        guard try FileManager.default.attributesOfItem(atPath: copy.path)[.size] as? Int == size else {
            throw BenchFailure("the file did not arrive whole")
        }
        return time
    }

    private func carry(
        _ server: String, _ peaks: inout [Int], _ queue: (Transfers) async throws -> Transfer
    ) async throws -> Double {
        let store = folder.appending(path: "store")
        try? FileManager.default.removeItem(at: store)
        let schema = try Schema(parsing: ItemShop.schemaText)
        let before = try Store.open(at: store, schema: schema)
        let id = try await queue(try before.partition().transfers).id
        try before.close()
        let child = try ChildProcess.run(try ChildProcess.own(["carry-transfers", store.path, server]))
        if let peak = Int(child.output) { peaks.append(peak) }
        let after = try Store.open(at: store, schema: schema)
        let status = try after.partition().transfers[id].status()
        try after.close()
        guard status.state == .done else { throw BenchFailure("the transfer is \(status)") }
        return child.seconds
    }

    // MARK: curl

    private func curl(_ arguments: [String]) throws -> Double {
        guard let curl = ChildProcess.named("curl", ["--silent", "--show-error", "--fail"] + arguments) else {
            throw BenchFailure("there is no curl, which is the floor")
        }
        return try ChildProcess.run(curl).seconds
    }

    private func url(_ server: String) -> String { "\(server)/\(location.bucket)/\(location.key)" }

    func curlUp(to server: String) throws -> Double {
        // Else it would wait for leave to send.
        try curl(["--header", "Expect:", "--output", "/dev/null", "--upload-file", source.path, url(server)])
    }

    /// As ours, it has arrived when it is on disk.
    func curlDown(from server: String) throws -> Double {
        try? FileManager.default.removeItem(at: copy)
        let time = try curl(["--output", copy.path, url(server)])
        let file = try FileHandle(forUpdating: copy)
        defer { try? file.close() }
        return time + (try Measurement.time { try file.synchronize() })
    }
}
