/// Figures as people read them.
enum Figures {
    /// Three digits or so, in µs, ms or s.
    static func text(_ duration: Duration) -> String {
        let seconds = seconds(duration)
        if seconds < 0.001 { return number(seconds * 1e6, "µs") }
        if seconds < 1 { return number(seconds * 1e3, "ms") }
        return number(seconds, "s")
    }

    static func text(bytes: Int) -> String {
        bytes < 1_000_000 ? number(Double(bytes) / 1e3, "kB") : number(Double(bytes) / 1e6, "MB")
    }

    /// With a comma at each thousand.
    static func text(_ count: Int) -> String {
        var text = String(count.magnitude)
        var end = text.endIndex
        while let place = text.index(end, offsetBy: -3, limitedBy: text.startIndex), place > text.startIndex {
            text.insert(",", at: place)
            end = place
        }
        return count < 0 ? "-" + text : text
    }

    /// How many times shorter than `long` a duration is.
    static func ratio(_ long: Duration, _ short: Duration) -> String {
        let ratio = seconds(long) / max(seconds(short), 1e-9)
        return ratio < 10 ? "\((ratio * 10).rounded() / 10) x" : "\(text(Int(ratio.rounded()))) x"
    }

    private static func seconds(_ duration: Duration) -> Double {
        let (seconds, attoseconds) = duration.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    private static func number(_ value: Double, _ unit: String) -> String {
        let digits = value < 10 ? 2 : value < 100 ? 1 : 0
        let scale = digits == 2 ? 100.0 : digits == 1 ? 10 : 1
        let scaled = Int((value * scale).rounded())
        guard digits > 0 else { return "\(text(scaled)) \(unit)" }
        let whole = scaled / Int(scale)
        let rest = String(scaled % Int(scale))
        return "\(whole).\(String(repeating: "0", count: digits - rest.count))\(rest) \(unit)"
    }
}
