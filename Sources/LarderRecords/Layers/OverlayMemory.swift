import LarderFiles

/// Bytes that stay where they are for as long as this lives. Overlays that go on from one another have it in common.
final class OverlayMemory: Sendable {
    /// The first piece is small: there are overlays of one layer.
    private static let smallest = 512
    private static let largest = 32 << 10

    /// Unchecked: a place in it is written once, before others hear of it. Safe: it is freed with this object.
    @safe private struct Piece: @unchecked Sendable {
        let bytes: UnsafeMutableRawBufferPointer
    }

    private struct Pieces {
        var all: [Piece] = []
        var used = 0
    }

    private let pieces = Locked(Pieces())

    deinit { pieces.withLock { pieces in for piece in pieces.all { unsafe piece.bytes.deallocate() } } }

    /// Copies the bytes and answers where they are.
    func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let place = pieces.withLock { pieces in
            // Records are read as if they lay in the map.
            pieces.used = (pieces.used + 7) & ~7
            let rest = pieces.all.last.map { unsafe $0.bytes.count - pieces.used } ?? 0
            if rest < bytes.count {
                let size = max(bytes.count, min(Self.largest, Self.smallest << min(pieces.all.count, 6)))
                unsafe pieces.all.append(Piece(bytes: .allocate(byteCount: size, alignment: 8)))
                pieces.used = 0
            }
            defer { pieces.used += bytes.count }
            return pieces.all.last.map {
                unsafe Piece(bytes: .init(rebasing: $0.bytes[pieces.used...].prefix(bytes.count)))
            }
        }
        guard let place, unsafe !bytes.isEmpty else { return unsafe UnsafeRawBufferPointer(start: nil, count: 0) }
        unsafe place.bytes.copyMemory(from: bytes)
        return unsafe UnsafeRawBufferPointer(place.bytes)
    }
}
