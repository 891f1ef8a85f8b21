/// Bytes that stay where they are for as long as this lives.
///
/// Unchecked: changed only while the overlay that owns it is being built, by the one thread that builds it.
final class OverlayMemory: @unchecked Sendable {
    /// The first piece is small: there are overlays of one layer.
    private static let smallest = 512
    private static let largest = 32 << 10
    private var chunks: [UnsafeMutableRawBufferPointer] = []
    private var used = 0

    deinit { for chunk in chunks { chunk.deallocate() } }

    /// Copies the bytes and answers where they are.
    func keep(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        // Records are read as if they lay in the map.
        used = (used + 7) & ~7
        if chunks.last.map({ $0.count - used < bytes.count }) ?? true {
            let size = max(bytes.count, min(Self.largest, Self.smallest << min(chunks.count, 6)))
            chunks.append(.allocate(byteCount: size, alignment: 8))
            used = 0
        }
        guard let chunk = chunks.last else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        let place = UnsafeMutableRawBufferPointer(rebasing: chunk[used..<(used + bytes.count)])
        place.copyMemory(from: bytes)
        used += bytes.count
        return UnsafeRawBufferPointer(place)
    }
}
