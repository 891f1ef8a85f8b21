extension LarderError.Code {
    /// An environment, or the file that describes it, cannot be used; the message says where and what would help.
    public static let environment = LarderError.Code(rawValue: "larder.environment")
}
