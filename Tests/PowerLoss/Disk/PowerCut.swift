/// Which of the things that were not synced a power cut leaves.
package struct PowerCut: Sendable, Hashable, CustomStringConvertible {
    package enum Fate: Sendable, Hashable {
        case lost, kept
        /// Some of it, by a seed.
        case torn
    }

    /// How file systems keep names.
    package enum Order: Sendable, Hashable, CaseIterable {
        /// As POSIX has it, and no more: a folder's names are durable when the folder is synced, and changes in one
        /// folder say nothing about those in another. A file's own sync does nothing for its name.
        case separate
        /// As ext4, XFS and APFS do: changes of names go through a journal in their order, and syncing a file makes its
        /// name durable, with all that came before.
        case journalled
    }

    package var order: Order
    package var contents: Fate
    package var names: Fate
    package var seed: UInt64

    package init(order: Order, contents: Fate, names: Fate, seed: UInt64 = 0) {
        (self.order, self.contents, self.names, self.seed) = (order, contents, names, seed)
    }

    package var description: String { "\(order) names \(names), contents \(contents), seed \(seed)" }

    /// Everything lost, by both kinds of file systems; everything kept; and some that only a seed knows.
    static func all(_ count: Int, by random: inout some RandomNumberGenerator) -> [PowerCut] {
        var cuts = Order.allCases.map { PowerCut(order: $0, contents: .lost, names: .lost) }
        cuts.append(PowerCut(order: .separate, contents: .kept, names: .kept))
        for number in 0..<count {
            let fates: [Fate] = [.torn, .torn, .lost, .kept]
            cuts.append(
                PowerCut(
                    order: number % 2 == 0 ? .journalled : .separate, contents: number % 8 == 7 ? .kept : .torn,
                    names: fates.randomElement(using: &random) ?? .torn, seed: random.next()))
        }
        return cuts
    }
}
