import Foundation

/// The words that the program was started with. Where one is missing, or is not what it should be, the program ends
/// with status 2.
struct Words {
    let store: URL
    let verb: String
    private let rest: [String]

    init(_ arguments: [String]) {
        guard arguments.count >= 3 else { exit(2) }
        store = URL(filePath: arguments[1])
        verb = arguments[2]
        rest = Array(arguments.dropFirst(3))
    }

    /// Whether there is a word at this place behind the verb, from 0.
    func has(_ index: Int) -> Bool { index < rest.count }

    func text(_ index: Int) -> String {
        guard has(index) else { exit(2) }
        return rest[index]
    }

    func file(_ index: Int) -> URL { URL(filePath: text(index)) }

    func number<Number: FixedWidthInteger>(_ index: Int, default missing: Number? = nil) -> Number {
        if !has(index), let missing { return missing }
        guard let number = Number(text(index)) else { exit(2) }
        return number
    }

    func choice<Choice: RawRepresentable<String>>(_ index: Int) -> Choice {
        guard let choice = Choice(rawValue: text(index)) else { exit(2) }
        return choice
    }

    /// A step after which the program is to kill itself, and how often it is made until then.
    func step<Step: RawRepresentable<String>>(_ index: Int) -> (Step, Int)? {
        has(index) ? (choice(index), number(index + 1, default: 1)) : nil
    }
}
