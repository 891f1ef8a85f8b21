/// A GraphQL input value at run time: a variable, an argument, a part of either.
///
/// Numbers keep their kind: `1` is `.int(1)`, `1.0` is `.float(1)`, and they are not equal.
public enum Value: Sendable {
    /// Null that is said; a variable that is left out is none.
    case null
    /// True or false.
    case boolean(Bool)
    /// A whole number.
    case int(Int64)
    /// A number with a fraction or an exponent, finite.
    case float(Double)
    /// The JSON text of a number that neither `Int64` nor `Double` keeps exactly.
    case number(String)
    /// A text; also an ID, and the name of an enum's value.
    case string(String)
    /// A list, in order.
    case list([Value])
    /// An input object, or the JSON object of a custom scalar.
    case object([String: Value])
}

extension Value {
    /// An integer of any type, kept exactly: `.int`, or `.number` where 64 bits do not hold it.
    public init(_ number: some BinaryInteger) {
        self = Int64(exactly: number).map(Value.int) ?? .number(String(number))
    }
}
