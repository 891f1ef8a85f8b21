import Crypto
package import Foundation
import LarderFiles
import NIOCore

/// Bytes that have arrived in one request.
package struct KeptBytes: Sendable {
    package let size: Int
    /// What is in their ETag, without quotation marks.
    let tag: String
    /// Nil where they were not read.
    private let md5: [UInt8]?
    /// Nil where they were forgotten.
    private let file: URL?

    /// The tag of what is made of several.
    static func tag(of parts: [KeptBytes]) -> String {
        let md5s = parts.compactMap(\.md5)
        guard md5s.count == parts.count else { return madeUpTag() }
        return hexadecimal(Insecure.MD5.hash(data: md5s.joined().map(\.self)))
    }

    /// - Parameter range: Within them.
    package func read(_ range: Range<Int>) throws -> Data {
        guard let path = file else { return Data(count: range.count) }
        let file = try FileHandle(forReadingFrom: path)
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(range.lowerBound))
        return try file.read(upToCount: range.count) ?? Data()
    }

    private static func madeUpTag() -> String { "unread-\(UUID().uuidString.lowercased())" }
}

extension KeptBytes {
    /// Takes them as they arrive. What is dropped before its end leaves a file behind.
    struct Writer {
        private var size = 0
        private var md5: Insecure.MD5?
        private var file: (url: URL, handle: FileHandle)?

        init(_ keeping: ObjectShelf.Keeping) throws {
            switch keeping {
            case .sizes: break
            case .files(let folder):
                md5 = Insecure.MD5()
                let url = folder.appending(path: UUID().uuidString)
                try Data().write(to: url)
                file = (url, try FileHandle(forWritingTo: url))
            }
        }

        mutating func write(_ bytes: ByteBuffer) throws {
            size += bytes.readableBytes
            bytes.withUnsafeReadableBytes { md5?.update(bufferPointer: $0) }
            try file?.handle.write(contentsOf: Data(bytes.readableBytesView))
        }

        func end() throws -> KeptBytes {
            try file?.handle.close()
            let md5 = md5.map { Array($0.finalize()) }
            let tag = md5.map { hexadecimal($0) } ?? KeptBytes.madeUpTag()
            return KeptBytes(size: size, tag: tag, md5: md5, file: file?.url)
        }
    }
}

extension ObjectShelf.Object {
    /// - Parameter range: Cut to what there is.
    package func read(_ range: Range<Int>) throws -> Data {
        var bytes = Data(capacity: range.count)
        var start = 0
        for part in parts {
            let wanted = range.clamped(to: start..<(start + part.bytes.size))
            if !wanted.isEmpty {
                bytes += try part.bytes.read((wanted.lowerBound - start)..<(wanted.upperBound - start))
            }
            start += part.bytes.size
        }
        return bytes
    }
}
