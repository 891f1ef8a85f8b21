extension LarderError.Code {
    /// The deadline passed; the message says what the call waited for, and who held it where that is known.
    public static let timedOut = LarderError.Code(rawValue: "larder.timedOut")
    /// A lock of the store cannot be made or taken; the cause says why.
    public static let lock = LarderError.Code(rawValue: "larder.lock")
}

extension LarderError {
    static var cancelled: LarderError { LarderError(.cancelled, "The task was cancelled") }
}
