import Foundation
import Synchronization

/// What a child process says, a number on each line.
final class SaidLines: Sendable {
    private struct Said {
        var rest: [UInt8] = []
        var lastNumber: Int?
        var isEnded = false
    }

    private let said = Mutex(Said())

    init(_ handle: FileHandle) {
        handle.readabilityHandler = { [weak self] handle in
            let bytes = handle.availableData
            if bytes.isEmpty { handle.readabilityHandler = nil }
            self?.take(bytes)
        }
    }

    /// The number on the last line that is whole.
    var lastNumber: Int? { said.withLock { $0.lastNumber } }

    /// Whether there is nothing more to come.
    var isEnded: Bool { said.withLock { $0.isEnded } }

    private func take(_ bytes: Data) {
        said.withLock { said in
            guard !bytes.isEmpty else {
                said.isEnded = true
                return
            }
            said.rest += bytes
            while let end = said.rest.firstIndex(of: UInt8(ascii: "\n")) {
                said.lastNumber = Int(String(decoding: said.rest[..<end], as: UTF8.self)) ?? said.lastNumber
                said.rest.removeSubrange(...end)
            }
        }
    }
}
