import Foundation
import LarderOperations

/// A bar of progress for each transfer that is under way.
struct TransferBars {
    private struct Sample {
        var time: SuspendingClock.Instant
        var arrived: Int64
    }

    /// What has arrived over the last while, by which the speed is told. Rows tell of whole parts only.
    private var samples: [UUID: [Sample]] = [:]
    private static let window = Duration.seconds(15)

    /// The lines, of so many columns.
    mutating func lines(
        of running: [StoredTransfer], columns: Int, at now: SuspendingClock.Instant = .now
    ) -> [String] {
        let known = Set(running.map(\.id))
        samples = samples.filter { known.contains($0.key) }
        return running.map { transfer in
            let speed = speed(of: transfer, at: now)
            return Self.line(of: transfer, speed: speed, columns: columns)
        }
    }

    /// Bytes per second; nil while that cannot be told.
    private mutating func speed(of transfer: StoredTransfer, at now: SuspendingClock.Instant) -> Double? {
        var known = samples[transfer.id] ?? []
        // An attempt that begins anew is another.
        if let last = known.last, last.arrived > transfer.arrived { known = [] }
        if known.last?.arrived != transfer.arrived { known.append(Sample(time: now, arrived: transfer.arrived)) }
        known.removeAll { $0.time.duration(to: now) > Self.window && $0.arrived != transfer.arrived }
        samples[transfer.id] = known
        guard let first = known.first, first.arrived < transfer.arrived else { return nil }
        let time = first.time.duration(to: now)
        guard time >= .milliseconds(500) else { return nil }
        return Double(transfer.arrived - first.arrived) / (time / .seconds(1))
    }

    static func line(of transfer: StoredTransfer, speed: Double?, columns: Int) -> String {
        let name = clipped("\(transfer.kind.text) \(transfer.bucket)/\(transfer.key)", to: max(12, columns / 3))
        var figures = ByteText(transfer.arrived).text
        if let size = transfer.size { figures += " of " + ByteText(size).text }
        if let speed {
            figures += ", \(ByteText(Int64(exactly: speed.rounded()) ?? .max).text)/s"
            if let size = transfer.size {
                let seconds = Int(exactly: (Double(size - transfer.arrived) / max(1, speed)).rounded(.up)) ?? .max
                figures += ", \(seconds) s left"
            }
        }
        guard let size = transfer.size, size > 0 else { return "\(name)  \(figures)" }
        let fraction = min(1, max(0, Double(transfer.arrived) / Double(size)))
        let percent = "\(Int(fraction * 100)) %"
        let room = columns - name.count - figures.count - percent.count - 8
        guard room >= 5 else { return "\(name)  \(percent)  \(figures)" }
        let full = Int(Double(room) * fraction)
        let bar = String(repeating: "#", count: full) + String(repeating: "-", count: room - full)
        return "\(name)  [\(bar)]  \(percent)  \(figures)"
    }

    /// The end of a key tells more than its beginning.
    private static func clipped(_ text: String, to width: Int) -> String {
        text.count <= width ? text : String(text.prefix(9)) + "..." + String(text.suffix(max(0, width - 12)))
    }
}

/// A count of bytes as people read it.
struct ByteText {
    private let count: Int64

    init(_ count: Int64) { self.count = count }

    var text: String {
        var value = Double(count)
        var unit = "B"
        for next in ["kB", "MB", "GB", "TB"] where value >= 999.5 {
            value /= 1_000
            unit = next
        }
        guard unit != "B", value < 99.95 else { return "\(Int(value.rounded())) \(unit)" }
        let tenths = Int((value * 10).rounded())
        return "\(tenths / 10).\(tenths % 10) \(unit)"
    }
}
