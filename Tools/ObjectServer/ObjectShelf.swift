import Crypto
package import Foundation
import Synchronization

/// What a server of objects has, and what it has counted.
package final class ObjectShelf: Sendable {
    /// What becomes of the bytes that arrive.
    package enum Keeping: Sendable {
        /// They are kept in files of this folder, which is there; ETags are made of their MD5, as S3's are.
        case files(URL)
        /// They are counted and forgotten: objects are zeros. ETags are made up, as of what is encrypted.
        case sizes
    }

    package struct Part: Sendable {
        package let number: Int
        package let bytes: KeptBytes
    }

    /// An object is kept as the parts that it was put together from.
    package struct Object: Sendable {
        package let etag: String
        package let parts: [Part]
        package var size: Int { parts.reduce(0) { $0 + $1.bytes.size } }
    }

    package struct Counts: Sendable, Equatable {
        /// Parts that have arrived whole.
        package var parts = 0
        /// Parts whose sending was begun although the storage had listed them to the sender before.
        package var needless = 0
        /// Ranges that were sent.
        package var ranges = 0
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

    let keeping: Keeping
    private let state = Mutex(State())

    init(_ keeping: Keeping) { self.keeping = keeping }

    package var counts: Counts { state.withLock { $0.counts } }
    package var unfinishedUploads: Int { state.withLock { $0.uploads.count } }

    /// - Parameter path: `/bucket/key`.
    package func object(_ path: String) -> Object? { state.withLock { $0.objects[path] } }

    // MARK: Whole objects

    func put(_ bytes: KeptBytes, at path: String) -> Object {
        let object = Object(etag: "\"\(bytes.tag)\"", parts: [Part(number: 1, bytes: bytes)])
        state.withLock { $0.objects[path] = object }
        return object
    }

    func countRange() { state.withLock { $0.counts.ranges += 1 } }

    // MARK: Uploads in parts

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

    /// A client has begun to send a part.
    func expect(_ number: Int, of upload: String) {
        state.withLock { state in
            if state.uploads[upload]?.listed.contains(number) == true { state.counts.needless += 1 }
        }
    }

    /// - Returns: Nil where there is no such upload.
    func put(_ number: Int, of upload: String, _ bytes: KeptBytes) -> Part? {
        state.withLock { state in
            guard var known = state.uploads[upload] else { return nil }
            let part = Part(number: number, bytes: bytes)
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
            let parts = wanted.compactMap { want in
                known.parts[want.number].flatMap { $0.bytes.tag == want.tag ? $0 : nil }
            }
            guard !parts.isEmpty, parts.count == wanted.count else { return nil }
            let object = Object(etag: "\"\(KeptBytes.tag(of: parts.map(\.bytes)))-\(parts.count)\"", parts: parts)
            state.objects[known.path] = object
            state.uploads[upload] = nil
            return object
        }
    }

    func abort(_ upload: String) { state.withLock { $0.uploads[upload] = nil } }
}
