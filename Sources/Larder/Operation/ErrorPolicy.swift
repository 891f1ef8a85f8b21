/// What becomes of an answer that has errors beside its data, or instead of it.
public enum ErrorPolicy: String, Sendable, Hashable, CaseIterable {
    /// It is thrown, as `.serverErrors`; the error has the data with it.
    case fail
    /// It is returned with its errors. One without data is thrown.
    case partial
    /// It is returned without its errors. One without data is thrown.
    case ignore
}
