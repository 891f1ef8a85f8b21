public import Foundation

/// By which a transfer is found, also after a restart.
public struct TransferID: Sendable, Hashable {
    /// The id itself.
    public let uuid: UUID

    /// The transfer of this id.
    public init(_ uuid: UUID) { self.uuid = uuid }

    /// Nil if the text is no UUID.
    public init?(_ text: String) {
        guard let uuid = UUID(uuidString: text) else { return nil }
        self.uuid = uuid
    }
}

extension TransferID: CustomStringConvertible {
    /// The UUID in small letters.
    public var description: String { uuid.uuidString.lowercased() }
}
