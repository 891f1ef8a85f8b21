/// What proves that a stored mutation has had no effect.
///
/// A mutation is provably unsent where it is pending and no attempt of it is in doubt: it was never begun, or every
/// attempt ended in a failure which proves that it had no effect. Only such a mutation may be sent from elsewhere than
/// the place at which it was queued: a switch carries no other, and a restoration and a repair set every other one
/// aside.
enum ProvablyUnsent {
    /// A condition of SQL on a row of the table `mutation`.
    ///
    /// - Parameter row: The name of the row in the statement.
    static func condition(_ row: String) -> String { "(\(row).state = \(mutation: .pending) AND \(row).doubt IS NULL)" }
}
