/// The numbers are stored, in compiled schemas.
package enum TypeKind: UInt8, Sendable, Hashable, CaseIterable {
    case scalar = 0
    case object = 1
    case interface = 2
    case union = 3
    case enumeration = 4
    case inputObject = 5

    /// Whether values of the type have fields to select.
    package var isComposite: Bool { self == .object || self == .interface || self == .union }
    /// Whether the type stands for a set of object types.
    package var isAbstract: Bool { self == .interface || self == .union }
    /// Whether variables and arguments can be of the type.
    package var isInput: Bool { self == .scalar || self == .enumeration || self == .inputObject }
    /// Whether fields can be of the type.
    package var isOutput: Bool { self != .inputObject }

    /// As messages call it.
    var noun: String {
        switch self {
        case .scalar: "scalar"
        case .object: "object type"
        case .interface: "interface"
        case .union: "union"
        case .enumeration: "enum"
        case .inputObject: "input object"
        }
    }
}
