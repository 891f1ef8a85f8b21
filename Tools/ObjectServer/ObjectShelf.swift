import Crypto
import Foundation
import Synchronization

/// What the storage of this demonstration has, in files of a folder, and what it has counted.
final class ObjectShelf: Sendable {
    struct Part: Sendable {
        var number: Int
        var file: URL
        var size: Int
        var md5: [UInt8]

        /// Without quotation marks.
        var tag: String { hexadecimal(md5) }
    }

    /// An object is kept as the parts that it was put together from.
    struct Object: Sendable {
        var etag: String
        var parts: [Part]
        var size: Int { parts.reduce(0) { $0 + $1.size } }
    }

    struct Counts: Sendable, Equatable {
        /// Parts that have arrived whole.
        var parts = 0
        /// Those whose sending was begun although the storage had listed them to the sender before.
        var needless = 0
        /// Ranges that were sent.
        var ranges = 0
    }

    private struct Upload {
        var path: String
        var parts: [Int: Part] = [:]
        var listed: Set<Int> = []
    }

    private struct State {
        var uploads: [String: Upload] = [:]
        var objects: [String: Object] = [:]
        var counts = Counts()
    }

    private let folder: URL
    private let state = Mutex(State())

    init(in folder: URL) { self.folder = folder }

    var counts: Counts { state.withLock { $0.counts } }
    var unfinishedUploads: Int { state.withLock { $0.uploads.count } }

    func object(_ path: String) -> Object? { state.withLock { $0.objects[path] } }

    func begin(_ path: String) -> String {
        let id = UUID().uuidString.lowercased()
        state.withLock { $0.uploads[id] = Upload(path: path) }
        return id
    }

    /// The uploads that are neither complete nor aborted, whose paths begin so.
    func uploads(_ prefix: String) -> [(path: String, id: String)] {
        state.withLock { state in
            state.uploads.filter { $0.value.path.hasPrefix(prefix) }.map { ($0.value.path, $0.key) }.sorted { $0 < $1 }
        }
    }

    /// Somebody has begun to send a part.
    func expect(_ number: Int, of upload: String) {
        state.withLock { state in
            if state.uploads[upload]?.listed.contains(number) == true { state.counts.needless += 1 }
        }
    }

    /// - Returns: The part; nil where there is no such upload.
    func put(_ number: Int, of upload: String, _ bytes: Data) throws -> Part? {
        guard state.withLock({ $0.uploads[upload] != nil }) else { return nil }
        let file = folder.appending(path: UUID().uuidString)
        try bytes.write(to: file)
        let part = Part(number: number, file: file, size: bytes.count, md5: Array(Insecure.MD5.hash(data: bytes)))
        return state.withLock { state in
            guard var known = state.uploads[upload] else { return nil }
            state.counts.parts += 1
            known.parts[number] = part
            state.uploads[upload] = known
            return part
        }
    }

    /// The parts of an upload, which its sender knows of from now on; nil where there is no such upload.
    func list(_ upload: String) -> [Part]? {
        state.withLock { state in
            guard var known = state.uploads[upload] else { return nil }
            known.listed.formUnion(known.parts.keys)
            state.uploads[upload] = known
            return known.parts.values.sorted { $0.number < $1.number }
        }
    }

    /// Puts an object together from the parts of these numbers and tags; nil where there are no such.
    func complete(_ upload: String, _ wanted: [(number: Int, tag: String)]) -> Object? {
        state.withLock { state in
            guard let known = state.uploads[upload] else { return nil }
            let parts = wanted.compactMap { want in known.parts[want.number].flatMap { $0.tag == want.tag ? $0 : nil } }
            guard !parts.isEmpty, parts.count == wanted.count else { return nil }
            let digest = Insecure.MD5.hash(data: parts.flatMap(\.md5))
            let object = Object(etag: "\"\(hexadecimal(digest))-\(parts.count)\"", parts: parts)
            state.objects[known.path] = object
            state.uploads[upload] = nil
            return object
        }
    }

    func abort(_ upload: String) { state.withLock { $0.uploads[upload] = nil } }

    func bytes(_ range: Range<Int>, of object: Object) throws -> Data {
        var bytes = Data(capacity: range.count)
        var start = 0
        for part in object.parts {
            let wanted = range.clamped(to: start..<(start + part.size))
            if !wanted.isEmpty {
                let file = try FileHandle(forReadingFrom: part.file)
                defer { try? file.close() }
                try file.seek(toOffset: UInt64(wanted.lowerBound - start))
                bytes += try file.read(upToCount: wanted.count) ?? Data()
            }
            start += part.size
        }
        return bytes
    }

    func countRange() { state.withLock { $0.counts.ranges += 1 } }
}

private func hexadecimal(_ bytes: some Sequence<UInt8>) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
