import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("The file of a download that is under way", .timeLimit(.minutes(10)))
struct PartialFileTests {
    @Test("One that is reserved anew has nothing of what it had, also where it is as large as before")
    func reserved() async throws {
        try await withTemporaryFolder { folder in
            let file = try PartialFile(of: UUID(), in: folder, FileSystem())
            try file.reserve(8)
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 8, alignment: 1)
            defer { buffer.deallocate() }
            buffer.copyBytes(from: [UInt8](repeating: 7, count: 8))
            try file.write(0, UnsafeRawBufferPointer(buffer))
            try file.reserve(8)
            try file.read(0, buffer)
            #expect(Array(buffer) == [UInt8](repeating: 0, count: 8))
        }
    }

    @Test("A copy of it is on the disk when it has been made")
    func copied() async throws {
        try await withTemporaryFolder { folder in
            let recorded = InjectedFaults(at: .max) { _ in nil }
            let file = try PartialFile(of: UUID(), in: folder, recorded.files)
            try file.reserve(8)
            let copy = folder.appending(path: "copy").path
            try await file.copy(to: copy, mode: 0o644)
            let made = recorded.calls.filter { $0.path == copy }.map(\.kind)
            let sync = try #require(made.lastIndex(of: .synchronize))
            #expect(try #require(made.lastIndex(of: .write)) < sync)
        }
    }

    @Test("Its checksum is worked out a mebibyte at a time, whatever its size")
    func scanned() async throws {
        try await withTemporaryFolder { folder in
            let file = try PartialFile(of: UUID(), in: folder, FileSystem())
            try file.reserve(5 << 19)
            var sizes: [Int] = []
            try await file.scan(0..<5 << 19) { sizes.append($0.count) }
            #expect(sizes == [1 << 20, 1 << 20, 1 << 19])
        }
    }
}
