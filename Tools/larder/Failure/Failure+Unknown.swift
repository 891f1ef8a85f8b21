import Foundation
import LarderCommandLine

extension Failure.Code {
    /// The object is not in the cache.
    static let unknownObject = Failure.Code(rawValue: "command.unknownObject")
    /// No mutation of this id is known.
    static let unknownMutation = Failure.Code(rawValue: "command.unknownMutation")
    /// No transfer of this id is known.
    static let unknownTransfer = Failure.Code(rawValue: "command.unknownTransfer")
    /// Nothing is pinned under the name.
    static let unknownPin = Failure.Code(rawValue: "command.unknownPin")
}

extension Failure {
    static func unknownMutation(_ id: UUID) -> Failure {
        Failure(.unknownMutation, .miss, "There is no mutation \(id.text), or its outcome was forgotten")
    }

    static func unknownTransfer(_ id: UUID) -> Failure {
        Failure(.unknownTransfer, .miss, "There is no transfer \(id.text), or it was forgotten")
    }
}
