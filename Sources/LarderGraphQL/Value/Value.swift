/// A GraphQL input value at run time: a variable, an argument, a part of either.
///
/// Numbers keep their kind: `1` is `.int(1)`, `1.0` is `.float(1)`, and they are not equal.
public enum Value: Sendable {
    case null
    case boolean(Bool)
    case int(Int64)
    case float(Double)
    /// The JSON text of a number that neither `Int64` nor `Double` keeps exactly.
    case number(String)
    case string(String)
    case list([Value])
    case object([String: Value])
}
