/// Which of the things that were not synced a power cut leaves.
struct PowerCut: Sendable, Hashable, CustomStringConvertible {
    enum Fate: Sendable, Hashable {
        case lost, kept
        /// Some of it, by a seed.
        case torn
    }

    var order: FolderNames.Order
    var contents: Fate
    var names: Fate
    var seed: UInt64

    var description: String { "\(order) names \(names), contents \(contents), seed \(seed)" }

    /// Everything lost, by both kinds of file systems; everything kept; and some that only a seed knows.
    static func all(_ count: Int, by random: inout some RandomNumberGenerator) -> [PowerCut] {
        var cuts = FolderNames.Order.allCases.map { PowerCut(order: $0, contents: .lost, names: .lost, seed: 0) }
        cuts.append(PowerCut(order: .separate, contents: .kept, names: .kept, seed: 0))
        for number in 0..<count {
            let fates: [Fate] = [.torn, .torn, .lost, .kept]
            cuts.append(PowerCut(
                order: number % 2 == 0 ? .journalled : .separate, contents: number % 8 == 7 ? .kept : .torn,
                names: fates.randomElement(using: &random) ?? .torn, seed: random.next()))
        }
        return cuts
    }
}
