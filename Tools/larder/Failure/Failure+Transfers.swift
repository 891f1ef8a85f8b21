import Foundation
import LarderCommandLine

extension Failure.Code {
    /// No transfer of this id is known.
    static let unknownTransfer = Failure.Code(rawValue: "command.unknownTransfer")
}

extension Failure {
    static func unknownTransfer(_ id: UUID) -> Failure {
        Failure(.unknownTransfer, .miss, "There is no transfer \(id.text), or it was forgotten")
    }
}
