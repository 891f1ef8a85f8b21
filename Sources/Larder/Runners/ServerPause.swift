import Foundation

/// A server that asks to be left alone, and for how long all lanes do so: as it says, and at least for a pause that
/// grows with each time in a row. After it one lane goes there alone, until the server takes something up.
struct ServerPause: Sendable {
    /// How often in a row it asked.
    private(set) var count = 0
    /// Changes with each pause and each end of one: an exchange that was begun in another turn says nothing new.
    private(set) var turn = 0
    private var since = Date.distantPast
    private var until = Date.distantPast

    /// When the pause is over; nil where there is none. One whose beginning is yet to come was worked out by a clock
    /// that has been set back since.
    func end(at now: Date) -> Date? { since <= now && now < until ? until : nil }

    /// - Parameters:
    ///   - pause: By how often in a row the server has asked, this time included.
    ///   - turn: In which the exchange was begun.
    mutating func begin(at now: Date, inTurn turn: Int, _ pause: (Int) -> Duration) {
        guard turn == self.turn else { return }
        count += 1
        self.turn += 1
        (since, until) = (now, now.addingTimeInterval(pause(count).seconds))
    }

    /// The server has taken something up.
    mutating func end(inTurn turn: Int) {
        guard count > 0, turn == self.turn else { return }
        count = 0
        self.turn += 1
        until = .distantPast
    }
}
