extension Value {
    /// An integer of any type, kept exactly: `.int`, or `.number` where 64 bits do not hold it.
    public init(_ number: some BinaryInteger) {
        self = Int64(exactly: number).map(Value.int) ?? .number(String(number))
    }
}
