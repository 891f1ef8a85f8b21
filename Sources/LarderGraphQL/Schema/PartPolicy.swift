/// What a program knows of an object without identity, a *part*, that comes again in the field that holds it.
///
/// Without a policy, what comes is taken for the object that is there while no field that both have differs, and for
/// another one otherwise.
public enum PartPolicy: String, Sendable, Hashable, CaseIterable, BitwiseCopyable {
    /// It is the same object, changed: the fields that did not come stay. One of another `__typename` is another object
    /// all the same.
    case merge
    /// It is another object: nothing stays of what was there.
    case replace
}
